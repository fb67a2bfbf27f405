"""Published state machines: their graphs decide as the player does, and their card describes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hlc.baselines import FixedSkills
from hlc.compose.__main__ import main as compose
from hlc.compose.behavior import Behavior, make_behaviors
from hlc.compose.memory import (
    BOX,
    DECISIONS,
    ENDED,
    ENTRY,
    INDEX,
    ORIGIN,
    NextMemory,
    empty_memory,
)
from hlc.compose.player import play_machine
from hlc.compose.publish import (
    BoundMachine,
    JoinedGraphs,
    make_stages,
    measure_machine,
    publish_machine,
)
from hlc.compose.state_machine import StateMachine
from hlc.evaluate import main as evaluate
from hlc.parent import Parent, SimulationConfig, open_parent
from hlc.tasks.frames import level_place_in_heading
from hlc.tasks.getup import Getup
from hlc.tasks.speed import Speed
from hlc.tasks.strike import Strike
from hlc.tasks.task import Task
from pretrain.characters.state import unflatten
from serving.settings import Settings
from skills_store.runtime.library import Controller
from skills_store.store import BUNDLED, Store
from tests.hlc.bodies import clip_states
from tests.serving.local import Local, problem

REACH = {"controller": "reach@1", "parameters": {"success_distance": 0.6}}
STATES = {
    "near": REACH
    | {"goal": {"target": [0.3, -0.3, 1.0]}, "frame": "entry", "seconds": 1.5, "on_time": "far"},
    "far": REACH
    | {"goal": {"target": [1.5, 0.5, 1.0]}, "on_success": "end", "seconds": 4, "on_time": "near"},
}
SIMULATED = SimulationConfig(300, "mujoco", 1)


def bind(store: Store, states: dict[str, Any], **machine: Any) -> BoundMachine:
    read = StateMachine.model_validate({"skill": "humanoid@1", "states": states, **machine})
    parent = open_parent(store, read.skill)
    rng = torch.Generator().manual_seed(0)
    return BoundMachine(read, make_behaviors(read, parent, store, SIMULATED, rng), parent)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("machines"), bundled=Path(BUNDLED))


@pytest.fixture(scope="module")
def bound(opened: Store) -> BoundMachine:
    return bind(opened, STATES, seconds=3)


@pytest.fixture(scope="module")
def published(opened: Store, bound: BoundMachine) -> Controller:
    version = publish_machine("errand", bound, opened, SIMULATED, episodes=4, seed=0)
    return Controller.open(opened, version.ref)


def test_memory_matches_the_players_states(bound: BoundMachine) -> None:
    """Same states, same transitions at the same decisions."""
    played = play_machine(
        bound.machine,
        bound.behaviors,
        bound.parent,
        SIMULATED,
        rng=torch.Generator().manual_seed(3),
    )
    names = list(bound.machine.states)
    step = NextMemory(bound.machine, make_stages(bound), bound.parent.character.skeleton)
    memory = empty_memory(1, box=False)
    seen: list[str] = []
    expected: list[str] = []
    for visit in played.visits:
        for at in range(visit.start, visit.stop, bound.llc_steps):
            memory = step(pose(played.qpos[at - 1] if at else played.qpos[0]), memory)
            seen.append(names[int(memory[0, INDEX]) - 1])
            expected.append(visit.name)
    assert len(set(expected)) == 2
    assert seen == expected


def pose(qpos: torch.Tensor) -> torch.Tensor:
    """The state (1, S) at rest in a pose, which is all that reach observes."""
    return torch.cat([qpos[:7], torch.zeros(6), qpos[7:], torch.zeros(len(qpos) - 7)])[None]


def test_the_graphs_decide_as_the_controller_of_the_present_state(
    published: Controller, bound: BoundMachine
) -> None:
    states = clip_states(bound.parent, 8)
    state = states.flatten().numpy()
    goal = published.next_goal(state, np.zeros((8, published.goal_width)))
    assert np.allclose(goal[:, INDEX], 1)
    behavior = bound.behaviors["near"]
    for i in range(8):
        own = behavior.goal(states[i : i + 1]).numpy()
        assert np.allclose(
            published.decide(state, goal)[i], behavior.decide(state[i : i + 1], own)[0], atol=1e-5
        )


def test_a_machine_that_has_ended_keeps_its_last_controller(
    published: Controller, bound: BoundMachine
) -> None:
    goal = np.zeros((1, published.goal_width), np.float32)
    state = clip_states(bound.parent, 1).flatten().numpy()
    goal = published.next_goal(state, goal)
    goal[:, ENDED] = 1.0
    for _ in range(20):  # longer than the time of its state
        goal = published.next_goal(state, goal)
    assert goal[0, INDEX] == 1
    assert np.isclose(np.linalg.norm(published.decide(state, goal)), 1, atol=1e-5)


def test_a_service_refuses_a_memory_in_no_state_of_the_machine(
    published: Controller, opened: Store, bound: BoundMachine
) -> None:
    local = Local(Settings(store=opened.root, skill="humanoid@1", refresh=3600.0))
    state = clip_states(bound.parent, 1).flatten()[0].tolist()
    path = "/controllers/errand/act"
    memory = local.post(path, json={"state": state, "goal": [0.0] * 11}).json()["goal"]
    try:
        for index in (0, 1, 2):
            reply = local.post(path, json={"state": state, "goal": [index, *memory[1:]]}).json()
            assert np.linalg.norm(reply["z"]) == pytest.approx(1, abs=1e-4)
        for index in (-1, 3, 4, 1.25, 2.5):
            reply = local.post(path, json={"state": state, "goal": [index, *memory[1:]]})
            found = problem(reply, 422, "goal_out_of_range", "goal.state_index")
            assert f"{index:g}" in found["message"]
        for column, wrong in ((1, 1e9), (1, -1), (2, 2)):
            goal = [*memory[:column], wrong, *memory[column + 1 :]]
            reply = local.post(path, json={"state": state, "goal": goal})
            field = f"goal.{('decisions', 'ended')[column - 1]}"
            problem(reply, 422, "goal_out_of_range", field)
    finally:
        local.close()


def test_the_inference_protocol_refuses_a_memory_without_a_z(
    published: Controller, opened: Store, bound: BoundMachine
) -> None:
    local = Local(Settings(store=opened.root, skill="humanoid@1", refresh=3600.0))
    state = clip_states(bound.parent, 1).flatten().tolist()
    try:
        for index in (0.0, 4.0):
            inputs = [
                {"name": name, "datatype": "FP32", "shape": [1, len(row[0])], "data": row}
                for name, row in (("state", state), ("goal", [[index] + [0.0] * 10]))
            ]
            reply = local.post("/v2/models/errand/infer", json={"inputs": inputs})
            assert (reply.status_code, reply.json()["code"]) == (422, "goal_out_of_range")
    finally:
        local.close()


def test_card_and_lineage_describe_the_state_machine(
    published: Controller, opened: Store, bound: BoundMachine
) -> None:
    manifest = published.version.manifest
    assert manifest.task is not None
    assert manifest.task.name == "machine"
    assert manifest.card["detail"]["ended"]["n"] == 4
    machine = manifest.lineage.config["machine"]
    assert machine["states"]["far"]["controller"] == opened.resolve("reach@1").pinned
    assert machine["skill"] == bound.parent.version.pinned


def test_published_machine_is_refused_as_a_task_controller(
    published: Controller, opened: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an evaluation, and as a state of another machine."""
    ref = published.version.ref
    assert evaluate([f"controller={ref}", f"store={opened.root}", "episodes=2"]) == 2
    assert f"{ref} is a state machine" in capsys.readouterr().err
    with pytest.raises(ValueError, match=f"{ref} is a state machine"):
        bind(opened, {"a": {"controller": ref, "seconds": 1, "on_time": "end"}})


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (
            {"a": {"task": "stand", "goal": {"place": [0, 0]}, "on_success": "end"}},
            "a: a planned task cannot be published, expected a controller",
        ),
        (
            {"near": STATES["near"] | {"on_fall": "near"}, "far": STATES["far"]},
            "near: on_fall cannot be published",
        ),
    ],
)
def test_unexportable_state_machine_is_refused(
    opened: Store, states: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        publish_machine("errand", bind(opened, states), opened, SIMULATED, episodes=1, seed=0)


def test_state_seconds_round_up_to_whole_decisions(opened: Store) -> None:
    """Of 5 control steps each: 0.6 s are 18 of them."""
    near = {name: x for name, x in STATES["near"].items() if name not in ("seconds", "on_time")}
    timed = {"seconds": 0.6, "on_time": "end"}
    stages = make_stages(bind(opened, {"a": near | timed, "b": near}))
    assert [stage.decisions for stage in stages] == [4, None]


def test_goal_positions_rotate_with_their_reference_frame(bound: BoundMachine) -> None:
    """Entered facing left at (2, 1): ahead is +y."""
    stage = make_stages(bound)[0]
    memory = empty_memory(1, box=False)
    memory[0, 7:11] = torch.tensor([2.0, 1.0, 0.0, 1.0])
    assert torch.allclose(stage.goals(memory), torch.tensor([[2.3, 1.3, 1.0]]))


@pytest.mark.parametrize(
    ("file", "name", "message"),
    [
        ("there_and_back", "../errand", "'../errand' cannot name a skill"),
        ("strike_and_return", "errand", "approach: a planned task cannot be published"),
    ],
)
def test_unpublishable_machine_is_refused_before_simulation(
    file: str, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    example = Path(__file__).parents[3] / "examples" / f"{file}.yaml"
    assert compose([str(example), f"publish={name}", f"store={BUNDLED}", "threads=1"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_self_transition_restarts_time_and_goal(opened: Store) -> None:
    """Its time begins again, and its goal is relative to the character at that time."""
    again = STATES["near"] | {"seconds": 0.5, "on_time": "near"}
    bound = bind(opened, {"near": again})
    step = NextMemory(bound.machine, make_stages(bound), bound.parent.character.skeleton)
    state = clip_states(bound.parent, 1).flatten()
    memory = step(state, empty_memory(1, box=False))
    decisions = []
    for _ in range(7):
        state[:, 0] += 1.0
        memory = step(state, memory)
        decisions.append(int(memory[0, DECISIONS]))
    assert decisions == [1, 2, 0, 1, 2, 0, 1]
    assert float(memory[0, ENTRY][0]) == pytest.approx(float(state[0, 0]) - 1, abs=1e-5)
    assert float(memory[0, ORIGIN][0]) == pytest.approx(float(state[0, 0]) - 7, abs=1e-5)


@pytest.mark.parametrize("seconds", [1, 2], ids=["in the last step", "before"])
def test_box_is_placed_as_configured_and_kept_in_memory(
    puppet_skills: Parent, seconds: int
) -> None:
    """The puppet never reaches it: the plays end by time."""
    machine = StateMachine.model_validate(
        {
            "states": {"strike": {"controller": "any@1", "seconds": 1, "on_time": "end"}},
            "box": [2.0, 1.0],
            "seconds": seconds,
        }
    )
    decided: list[torch.Tensor] = []

    def decide(state: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        decided.append(torch.cat([state, memory], -1))
        return torch.zeros(len(state), puppet_skills.skills.latent_dim)

    task = Strike()
    behavior = Behavior(
        "strike", machine.states["strike"], task, FixedSkills(np.zeros((1, 8), np.float32)), 5, None
    )
    bound = BoundMachine(machine, {"strike": behavior}, puppet_skills)
    memory = NextMemory(machine, make_stages(bound), puppet_skills.character.skeleton)
    joined = JoinedGraphs(memory, decide, {}, {})
    rng = torch.Generator().manual_seed(0)
    card = measure_machine(joined, bound, SimulationConfig(60, "puppet", 1), 3, rng)
    assert card["ended"] == 1
    assert card["seconds"] == pytest.approx(1.0)
    state, boxes = decided[0].split([puppet_skills.skills.state_width, 24], -1)
    place = level_place_in_heading(unflatten(state), boxes[:, BOX][:, :2])
    torch.testing.assert_close(place, torch.tensor([[2.0, 1.0]]).expand(3, -1), atol=1e-5, rtol=0)
    without = BoundMachine(
        machine.model_copy(update={"box": None}), {"strike": behavior}, puppet_skills
    )
    with pytest.raises(ValueError, match="a task needs a box, expected `box"):
        measure_machine(joined, without, SimulationConfig(60, "puppet", 1), 3, rng)


@pytest.mark.parametrize(
    ("task", "goal", "counts"), [(Speed(), "speed", True), (Getup(), "height", False)]
)
def test_falls_do_not_count_in_getup(parent: Parent, task: Task, goal: str, counts: bool) -> None:
    """Random skills fall within two seconds."""
    state = {"controller": "any@1", "goal": {goal: [1.0]}, "seconds": 3, "on_time": "end"}
    machine = StateMachine.model_validate({"states": {"a": state}, "seconds": 4})
    z = FixedSkills(np.ones((4, parent.skills.latent_dim), np.float32))
    behavior = Behavior("a", machine.states["a"], task, z, 5, None)
    bound = BoundMachine(machine, {"a": behavior}, parent)
    memory = NextMemory(machine, make_stages(bound), parent.character.skeleton)

    def decide(state: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(z(state.numpy(), memory.numpy()))

    joined = JoinedGraphs(memory, decide, {}, {})
    rng = torch.Generator().manual_seed(0)
    card = measure_machine(joined, bound, SimulationConfig(120, "mujoco", 1), 4, rng)
    assert (card["falls_per_minute"] > 0) == counts
    assert card["ended"] == (0 if counts else 1)
