"""Playing state machines: transitions, frames, boxes, and the bundled reach@1 in a closed loop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from hlc.compose.__main__ import main
from hlc.compose.behavior import make_behaviors
from hlc.compose.ground_frame import ground_frame, to_world
from hlc.compose.player import Playthrough, at_origin, play_machine
from hlc.compose.state_machine import StateMachine
from hlc.parent import Parent, SimulationConfig, open_parent
from pretrain.evaluation.video import EVERY, HEIGHT, WIDTH
from pretrain.sim.features import proprioception
from skills_store.store import BUNDLED, Store
from tests.hlc.bodies import clip_states

EXAMPLES = Path(__file__).parents[3] / "examples"
PLAN = {"candidates": 4, "horizon": 5}
STAND = {"task": "stand", "goal": {"place": [0.0, 0.0]}}


def play(
    parent: Parent, store: Store, states: dict[str, Any], engine: str = "mujoco", **machine: Any
) -> Playthrough:
    parsed = StateMachine.model_validate({"states": states, "plan": PLAN, **machine})
    simulated = SimulationConfig(1000, engine, 1)
    rngs = [torch.Generator().manual_seed(i) for i in range(2)]
    behaviors = make_behaviors(parsed, parent, store, simulated, rngs[0])
    return play_machine(parsed, behaviors, parent, simulated, rng=rngs[1])


def path_of(played: Playthrough) -> list[tuple[str, str]]:
    return [(visit.name, visit.cause) for visit in played.visits]


def test_time_and_success_transitions_enter_their_states(
    puppet_skills: Parent, store: Store
) -> None:
    """The puppet does not move: `stand` succeeds after one decision."""
    waits = STAND | {"seconds": 0.5, "on_time": "stands"}
    stands = STAND | {"on_success": "end"}
    played = play(puppet_skills, store, {"waits": waits, "stands": stands}, "puppet")
    assert path_of(played) == [("waits", "time"), ("stands", "success")]
    assert [(visit.start, visit.stop) for visit in played.visits] == [(0, 15), (15, 20)]
    assert played.ended
    assert played.qpos.shape == (20, 7 + 28)


def test_success_in_the_last_step_counts(puppet_skills: Parent, store: Store) -> None:
    states = {"a": STAND | {"seconds": 1 / 6, "on_time": "a", "on_success": "end"}}
    assert path_of(play(puppet_skills, store, states, "puppet")) == [("a", "success")]


@pytest.mark.parametrize("transition", [{"on_success": "end"}, {"seconds": 0.5, "on_time": "end"}])
def test_a_transition_in_the_last_step_ends_the_machine(
    puppet_skills: Parent, store: Store, transition: dict[str, Any]
) -> None:
    seconds = transition.get("seconds", 1 / 6)
    played = play(puppet_skills, store, {"a": STAND | transition}, "puppet", seconds=seconds)
    assert played.ended


def test_state_seconds_round_up_to_whole_decisions(puppet_skills: Parent, store: Store) -> None:
    """As in a published machine, which is called once a decision."""
    waits = STAND | {"seconds": 0.6, "on_time": "end"}
    assert len(play(puppet_skills, store, {"a": waits}, "puppet").qpos) == 20


def test_endless_state_machine_stops_at_its_time_limit(puppet_skills: Parent, store: Store) -> None:
    again = STAND | {"seconds": 0.5, "on_time": "a"}
    played = play(puppet_skills, store, {"a": again}, "puppet", seconds=1.2)
    assert path_of(played) == [("a", "time")] * 2 + [("a", "total time")]
    assert not played.ended
    assert played.seconds == pytest.approx(1.2)


def test_fall_enters_on_fall_state_and_getup_ignores_falls(parent: Parent, store: Store) -> None:
    """Random skills fall within two seconds."""
    states = {
        "walk": {"task": "speed", "goal": {"speed": [1.0]}, "on_fall": "rise"},
        "rise": {
            "task": "getup",
            "goal": {"height": [1.25]},
            "seconds": 1.0,
            "on_time": "end",
        },
    }
    played = play(parent, store, states)
    assert path_of(played) == [("walk", "fall"), ("rise", "time")]
    assert played.ended
    del states["walk"]["on_fall"]
    assert path_of(play(parent, store, states)) == [("walk", "fall")]


def test_a_task_with_a_box_has_the_box_for_its_goal(parent: Parent, store: Store) -> None:
    strike = {"task": "strike", "seconds": 0.5, "on_time": "end"}
    played = play(parent, store, {"strike": strike}, box=[3.0, 1.0])
    box = played.qpos[-1, -7:]
    torch.testing.assert_close(box[:3], torch.tensor([3.0, 1.0, 0.9]), atol=0.01, rtol=0)
    away = played.visits[0].distance
    assert away is not None
    assert 2.0 < away < 4.5
    with pytest.raises(ValueError, match=r"expected `box: \[x, y\]`"):
        play(parent, store, {"strike": strike})
    with pytest.raises(ValueError, match="strike: frame is 'entry', expected 'world'"):
        play(parent, store, {"strike": strike | {"frame": "entry"}}, box=[3.0, 1.0])
    with pytest.raises(ValueError, match="strike: the goal is the box, expected none"):
        play(parent, store, {"strike": strike | {"goal": {"place": [1.0, 0.0]}}}, box=[3.0, 1.0])


def test_a_goal_of_other_parts_than_its_task_has_is_refused(parent: Parent, store: Store) -> None:
    wrong = STAND | {"goal": {"place": [1.0]}}
    with pytest.raises(ValueError, match=r"a: the goal has {'place': 1}, expected .*'place': 2"):
        play(parent, store, {"a": wrong})


def test_controller_trained_on_another_library_is_refused() -> None:
    store = Store(BUNDLED)
    parent = open_parent(store, "humanoid@4")
    trained_on = store.resolve("humanoid@1")
    with pytest.raises(ValueError, match=r"reach@1 was trained on humanoid@1") as found:
        play(parent, store, {"a": {"controller": "reach@1", "goal": {"target": [0, 0, 1]}}})
    for digest in (parent.version.digest, trained_on.digest):
        assert digest in str(found.value)


def test_at_origin_moves_the_start_and_keeps_its_features(parent: Parent) -> None:
    state = clip_states(parent, 16)
    moved = at_origin(state)
    torch.testing.assert_close(proprioception(moved), proprioception(state), atol=1e-5, rtol=1e-4)
    assert moved.root_pos[:, :2].abs().max() == 0


def test_a_goal_of_the_entry_frame_lies_around_the_character(parent: Parent) -> None:
    from hlc.tasks.frames import level_place_in_heading
    from hlc.tasks.location import Location

    state = clip_states(parent, 16)
    goal = torch.tensor([[2.0, -1.0]]).expand(16, -1)
    world = to_world(goal, Location().goal_layout(), ground_frame(state))
    torch.testing.assert_close(level_place_in_heading(state, world), goal, atol=1e-5, rtol=1e-4)


def compose(file: Path, picture: Path) -> subprocess.CompletedProcess[str]:
    """Run the program in a process: the renderer is chosen when mujoco is imported."""
    options = [f"out={picture}", f"store={BUNDLED}", "threads=1", "json=true"]
    command = [sys.executable, "-m", "hlc.compose", str(file), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def opened(picture: Path, error: str) -> np.ndarray:
    """(H, W, 3); skips the test if this machine cannot render."""
    skip_without_rendering(error)
    return np.asarray(Image.open(picture))


def skip_without_rendering(error: str) -> None:
    if "no rendering here" in error:
        pytest.skip(error.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, str, Path]:
    """The example with the bundled reach@1: what it printed, its errors, its picture."""
    picture = tmp_path_factory.mktemp("sheet") / "sheet.png"
    run = compose(EXAMPLES / "two_targets.yaml", picture)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout), run.stderr, picture


def test_the_bundled_controller_takes_its_hand_to_two_targets(reached) -> None:
    """Closed loop: the second target is relative to the character at that time."""
    found, _, _ = reached
    assert [visit["name"] for visit in found["visits"]] == ["ahead", "left"]
    assert [visit["cause"] for visit in found["visits"]] == ["success"] * 2
    assert all(visit["distance"] < 0.5 for visit in found["visits"])
    assert found["ended"]


def test_the_contact_sheet_has_a_strip_for_each_visit(reached) -> None:
    found, error, picture = reached
    rows = sum(-(-(visit["stop"] - visit["start"]) // 100) for visit in found["visits"])
    assert opened(picture, error).shape == (137 * rows, 1600, 3)


def test_a_box_is_drawn_beside_its_character(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text("""
skill: humanoid@1
box: [0.7, 0.0]
plan: {candidates: 2, horizon: 2}
states: {strike: {task: strike, seconds: 0.2, on_time: end}}
""")
    picture = tmp_path / "box.png"
    run = compose(file, picture)
    pixels = opened(picture, run.stderr).astype(float)
    red, green, blue = (pixels[..., i] / pixels[..., 0].clip(1) for i in range(3))
    brown = (red > 0) & (abs(green - 0.8) < 0.1) & (abs(blue - 0.65) < 0.15)
    assert brown.sum() > 1000


def test_a_video_has_a_frame_for_every_second_control_step(tmp_path: Path) -> None:
    file = tmp_path / "stand.yaml"
    file.write_text("""
skill: humanoid@1
plan: {candidates: 2, horizon: 2}
states: {stand: {task: stand, goal: {place: [0, 0]}, seconds: 0.5, on_time: end}}
""")
    video = tmp_path / "stand.gif"
    run = compose(file, video)
    skip_without_rendering(run.stderr)
    with Image.open(video) as found:
        frames = getattr(found, "n_frames", 1)
        assert (frames, found.size) == (len(range(0, 15, EVERY)), (WIDTH, HEIGHT))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected one state machine file, got 0"),
        (["a.yaml", "b.yaml"], "expected one state machine file, got 2"),
        (["missing.yaml"], "missing.yaml"),
        (["a.yaml", "out=sheet.jpg"], "out=sheet.jpg, expected a .png"),
        (["a.yaml", "out=nosuch/sheet.png"], "out=nosuch/sheet.png: there is no folder nosuch"),
        (["a.yaml", "speed=1"], "unknown key speed"),
    ],
)
def test_wrong_arguments_are_a_one_line_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
