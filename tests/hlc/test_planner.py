"""The planner on a deterministic puppet: predicted returns, falls, refinement and errors."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from hlc import plan
from hlc.config import CONFIG_MODEL, HlcConfig, PlanConfig
from hlc.measures import measure
from hlc.parent import Parent
from hlc.planner import Planner
from hlc.tasks.scene import UPRIGHT, Scene
from hlc.tasks.speed import Speed
from hlc.tasks.task import Range
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part, unflatten
from skills_store.manifest import GoalLimit
from tests.hlc.bodies import clip_states
from tests.hlc.puppet import PuppetEngine

W = 3
HORIZON = 10


class Leftward:
    """A duck-typed task: turn left. It has neither distance nor potential."""

    distance_unit: ClassVar[str] = "m"
    goal_time_min = 1.0
    goal_time_max = 1.0

    def goal_layout(self) -> tuple[Part, ...]:
        return (Part("rate", 0, 1, "rad/s", "scalar"),)

    def goal_ranges(self) -> dict[str, Range]:
        return {"rate": (1.0, 1.0)}

    def goal_limits(self) -> tuple[GoalLimit, ...]:
        return ()

    def scene(self) -> Scene:
        return UPRIGHT

    def required_bodies(self) -> tuple[str, ...]:
        return ()

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        return torch.ones(*state.shape, 1)

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        return goal

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return (state.root_ang_vel[..., 2] / 10).clamp(0, 1)

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return state.root_ang_vel[..., 2] > 1

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> None:
        return None

    def potential(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> None:
        return None


class Stumbler(PuppetEngine):
    """A puppet that falls in the last step of the horizon if it turns left."""

    steps = 0

    def place(self, ids: Tensor, state: CharacterState) -> None:
        super().place(ids, state)
        self.steps = 0

    def advance(self, targets: Tensor) -> Tensor:
        self.steps += 1
        return super().advance(targets)

    def touching(self) -> Tensor:
        touching = super().touching()
        touching[:, 0] = (self._state.root_ang_vel[:, 2] > 0) & (self.steps == HORIZON)
        return touching


def make(parent: Parent, engine: type[PuppetEngine] = PuppetEngine, **settings: float) -> Planner:
    cfg = PlanConfig.model_validate({"horizon": HORIZON, "candidates": 12, **settings})
    backend = engine(parent.character, W * cfg.candidates, 1)
    return Planner(parent, Leftward(), backend, cfg, rng=Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"segments": HORIZON + 1}, "is over horizon"),
        ({"iterations": 2, "elites": 1}, "elites 1, expected 2 to candidates 12"),
        ({"iterations": 2, "elites": 13}, "elites 13, expected 2 to candidates 12"),
    ],
)
def test_conflicting_plan_sizes_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PlanConfig.model_validate({"horizon": HORIZON, "candidates": 12, **settings})


def start(parent: Parent) -> tuple[np.ndarray, np.ndarray]:
    return clip_states(parent, W).flatten().numpy(), np.ones((W, 1), np.float32)


def test_planner_accepts_a_duck_typed_task(puppet_skills: Parent) -> None:
    """The second number of z is the turn rate of the puppet: the planner finds it."""
    z = make(puppet_skills, candidates=48)(*start(puppet_skills))
    np.testing.assert_allclose(np.linalg.norm(z, axis=-1), 1, atol=1e-5)
    assert (z[:, 1] > 0.3).all()


def test_planner_value_matches_the_executed_return(puppet_skills: Parent) -> None:
    state, goal = start(puppet_skills)
    z, value = make(puppet_skills).plan(state, goal)
    real = PuppetEngine(puppet_skills.character, W, 1)
    real.place(torch.arange(W), unflatten(torch.from_numpy(state)))
    total = torch.zeros(W)
    for _ in range(HORIZON):
        targets = puppet_skills.skills.act(real.state().flatten().numpy(), z)
        real.advance(torch.from_numpy(targets))
        reward = Leftward().reward(
            puppet_skills.character.skeleton, real.state(), torch.from_numpy(goal)
        )
        total += reward
    torch.testing.assert_close(value, total)


class FarAway(Leftward):
    """Its place is out of reach: nothing changes the potential."""

    def potential(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch.full(state.shape, -1000.0)


def test_only_the_gain_in_potential_counts(puppet_skills: Parent) -> None:
    """Otherwise a fall would raise the value far from the goal, as it ends the sum."""
    cfg = PlanConfig(horizon=HORIZON, candidates=12)
    values: list[Tensor] = []
    for task in (Leftward(), FarAway()):
        backend = Stumbler(puppet_skills.character, W * cfg.candidates, 1)
        planner = Planner(puppet_skills, task, backend, cfg, rng=Generator().manual_seed(0))
        values.append(planner.plan(*start(puppet_skills))[1])
    torch.testing.assert_close(values[0], values[1])


def test_chosen_skills_are_copies(puppet_skills: Parent) -> None:
    planner = make(puppet_skills)
    z = planner(*start(puppet_skills))
    before = z.copy()
    planner.reset_plans(torch.arange(W))
    np.testing.assert_array_equal(z, before)


def test_fall_cost_makes_the_planner_avoid_falls(puppet_skills: Parent) -> None:
    careless = make(puppet_skills, Stumbler, fall_cost=0.0)(*start(puppet_skills))
    careful = make(puppet_skills, Stumbler, fall_cost=30.0)(*start(puppet_skills))
    assert (careless[:, 1] > 0).all()
    assert (careful[:, 1] <= 0).all()


def test_refitting_never_lowers_the_value_of_a_plan(puppet_skills: Parent) -> None:
    _, shooting = make(puppet_skills, segments=2).plan(*start(puppet_skills))
    _, refit = make(puppet_skills, segments=2, iterations=4).plan(*start(puppet_skills))
    assert (refit >= shooting).all()
    assert (refit > shooting).any()


def test_the_last_plan_is_among_the_next_candidates(puppet_skills: Parent) -> None:
    """From the same state, replanning never lowers the value."""
    planner = make(puppet_skills)
    _, before = planner.plan(*start(puppet_skills))
    for _ in range(3):
        _, after = planner.plan(*start(puppet_skills))
        assert (after >= before).all()
        before = after


def test_plans_are_deterministic_per_seed(puppet_skills: Parent) -> None:
    a, b = (make(puppet_skills)(*start(puppet_skills)) for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_wrong_number_of_rows_or_worlds_is_refused(puppet_skills: Parent) -> None:
    with pytest.raises(ValueError, match="state has 2 rows, expected 3"):
        make(puppet_skills)(*(x[:2] for x in start(puppet_skills)))
    with pytest.raises(ValueError, match="does not divide the 7 worlds"):
        Planner(
            puppet_skills,
            Speed(),
            PuppetEngine(puppet_skills.character, 7, 1),
            PlanConfig(candidates=2),
            rng=Generator(),
        )


@pytest.fixture
def puppet(puppet_skills: Parent) -> HlcConfig:
    return CONFIG_MODEL(
        skill=puppet_skills.version.pinned,
        engine="puppet",
        threads=1,
        episode_length=4.0,
        plan=PlanConfig(episodes=8, candidates=16),
    )


def test_planning_has_a_higher_return_than_random_skills(
    puppet: HlcConfig, puppet_skills: Parent
) -> None:
    planner = plan.make_planner(puppet_skills, puppet, 8, seed=0)
    random = plan.random_players(puppet_skills, puppet, 8)["held"]
    planned = measure(planner, puppet_skills, puppet, 8)
    drawn = measure(random, puppet_skills, puppet, 8)
    assert planned["return"]["mean"] > 2 * drawn["return"]["mean"]
    assert planned["falls_per_minute"]["mean"] == 0


def test_the_program_prints_a_row_for_each_player(
    puppet: HlcConfig, puppet_skills: Parent, store, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["task=speed", "engine=puppet", "threads=1", "episode_length=1.0"]
    where = [f"store={store.root}", f"skill={puppet_skills.version.ref}"]
    assert plan.main([*arguments, *where, "plan.episodes=2", "plan.candidates=4"]) == 0
    printed = capsys.readouterr().out
    for row in ("planner ", "random (redrawn)", "random (held)", "decisions/s"):
        assert row in printed
    assert plan.main(["task=fly"]) == 2
    assert "no task 'fly'; there are: reach, speed" in capsys.readouterr().err
