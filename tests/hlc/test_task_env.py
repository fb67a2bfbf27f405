"""The macro step: averaged and masked rewards, and ends of episodes, on a scripted engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hlc.config import HlcConfig
from hlc.goals import Goals
from hlc.parent import Parent, SimulationConfig
from hlc.task_env import DecisionConfig, TaskEnv, on_sphere
from hlc.tasks.reach import Reach
from hlc.tasks.scene import UPRIGHT
from hlc.tasks.speed import Speed
from hlc.train import build
from pretrain.characters.state import CharacterState
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from skills_store.store import Store
from tests.hlc.bodies import clip_states, publish_skills

STEPS = 5


class StillEngine:
    """Characters that do not move, and touch the ground or break at scripted steps."""

    box = None

    def __init__(
        self, parent: Parent, num_envs: int, falls: dict[int, int], breaks: dict[int, int]
    ):
        self.num_envs = num_envs
        self._falls = falls
        self._breaks = breaks
        self._bodies = len(parent.character.skeleton.bodies)
        self._state = clip_states(parent, num_envs)
        self.steps = 0

    def state(self) -> CharacterState:
        return self._state.map(torch.clone)

    def _worlds(self, script: dict[int, int]) -> Tensor:
        return torch.tensor([script.get(world) == self.steps for world in range(self.num_envs)])

    def touching(self) -> Tensor:
        touching = torch.zeros(self.num_envs, self._bodies, dtype=torch.bool)
        touching[:, 0] = self._worlds(self._falls)
        return touching

    def place(self, ids: Tensor, state: CharacterState) -> None:
        pass

    def advance(self, targets: Tensor) -> Tensor:
        self.steps += 1
        return self._worlds(self._breaks)

    def push(self, ids: Tensor, body: str, wrench: Tensor) -> None:
        pass

    def snapshot(self) -> dict[str, Tensor]:
        return {}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        pass


Scripted = Callable[..., TaskEnv]


@pytest.fixture
def scripted(parent: Parent) -> Scripted:
    def make(
        *,
        falls: dict[int, int],
        breaks: dict[int, int] | None = None,
        episode_length: int = 100,
        discount: float | None = None,
    ) -> TaskEnv:
        rng = torch.Generator().manual_seed(0)
        env = CharacterEnv(
            StillEngine(parent, 4, falls, breaks or {}),
            parent.character.skeleton,
            parent.clips,
            EpisodeConfig(window=parent.skills.window_length, length=episode_length),
            rng=rng,
        )
        goals = Goals(Reach(), 4, STEPS, rng)
        return TaskEnv(env, parent.skills, Reach(), goals, DecisionConfig(STEPS, discount))

    return make


def test_reward_stops_after_a_fall(scripted: Scripted, parent: Parent) -> None:
    env = scripted(falls={1: 3, 2: 5}, breaks={3: 2})
    each = Reach().reward(
        parent.character.skeleton, env.env.state(), env.goals.goal
    )  # nothing moves: equal in every step
    step = env.step(
        torch.randn(4, parent.skills.latent_dim, generator=torch.Generator().manual_seed(1))
    )
    torch.testing.assert_close(step.reward, each * torch.tensor([5, 2, 4, 1]) / STEPS)
    assert step.terminated.tolist() == [False, True, True, True]
    assert not step.truncated.any()


def test_observations_do_not_change_with_later_goals(parent: Parent) -> None:
    """The features of `speed` are its goal itself."""
    rng = torch.Generator().manual_seed(0)
    simulated = EpisodeConfig(window=parent.skills.window_length, length=100)
    engine = StillEngine(parent, 4, {}, {})
    character = parent.character.skeleton
    env = CharacterEnv(engine, character, parent.clips, simulated, rng=rng)
    task = Speed(goal_time_min=STEPS / 30, goal_time_max=STEPS / 30)  # a goal each decision
    skills = parent.skills
    decisions = DecisionConfig(STEPS)
    world = TaskEnv(env, skills, task, Goals(task, 4, STEPS, rng), decisions)
    first = world.step(torch.ones(4, skills.latent_dim)).next_obs
    before = {name: x.clone() for name, x in first.items()}
    world.step(torch.ones(4, skills.latent_dim))
    for name, x in first.items():
        assert torch.equal(x, before[name]), name


def test_goal_times_without_a_whole_decision_are_refused() -> None:
    task = Speed(goal_time_min=1.9, goal_time_max=1.9)
    with pytest.raises(ValueError, match=r"goal_time_min 1.9 to goal_time_max 1.9 s has no whole"):
        Goals(task, 1, 12, torch.Generator())


def test_step_does_not_reset_terminated_envs(scripted: Scripted, parent: Parent) -> None:
    env = scripted(falls={1: 3})
    action = torch.randn(4, parent.skills.latent_dim, generator=torch.Generator().manual_seed(1))
    first = env.step(action)
    assert env.env.age.tolist() == [5, 5, 5, 5]  # no reset inside
    env.reset(first.terminated.nonzero()[:, 0])
    assert env.env.age.tolist() == [5, 0, 5, 5]
    second = env.step(action)
    assert not second.terminated.any()


def test_time_limit_truncates_without_terminating(scripted: Scripted, parent: Parent) -> None:
    env = scripted(falls={1: 8}, episode_length=10)
    action = torch.randn(4, parent.skills.latent_dim, generator=torch.Generator().manual_seed(1))
    assert not env.step(action).truncated.any()
    step = env.step(action)
    assert step.terminated.tolist() == [False, True, False, False]
    assert step.truncated.tolist() == [True, False, True, True]
    assert (step.reward > 0).all()


def test_a_decision_records_the_states_it_ends_in(scripted: Scripted, parent: Parent) -> None:
    env = scripted(falls={})
    action = torch.randn(4, parent.skills.latent_dim, generator=torch.Generator().manual_seed(1))
    states = env.step(action).extras["states"]
    ended_in = env.env.states.clone()
    env.step(action)
    assert torch.equal(states, ended_in)


def test_only_the_direction_of_an_action_counts(toy: HlcConfig, parent: Parent) -> None:
    action = torch.randn(4, parent.skills.latent_dim, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(on_sphere(action).norm(dim=-1), torch.ones(4))
    ends = []
    for scale in (1.0, 8.0):
        env = build(toy, parent).env
        env.step(scale * action)
        ends.append(env.env.state().flatten())
    assert torch.equal(*ends)


def test_episodes_begin_in_clips_that_stay_upright(tmp_path) -> None:
    parent = publish_skills(Store(tmp_path), motions="all")
    simulated = SimulationConfig(100, threads=1)
    env = parent.simulation(64, UPRIGHT, simulated, torch.Generator().manual_seed(0))
    env.reset(torch.arange(64))
    assert not parent.upright.all()
    assert parent.upright[env.clip].all()
    assert len(env.clip.unique()) > 8


def test_discounted_progress_telescopes_over_changes_of_goal(
    scripted: Scripted, parent: Parent
) -> None:
    """The discounted sum is the last potential less the first, for any policy. Goals last 10 to 20
    decisions here."""
    gamma = 0.9
    env = scripted(falls={}, discount=gamma, episode_length=1000)
    rng = torch.Generator().manual_seed(1)
    first = potential(env)
    goals = env.goals.goal.clone()
    total = torch.zeros(4)
    for t in range(25):
        step = env.step(torch.randn(4, parent.skills.latent_dim, generator=rng))
        total += gamma**t * step.extras["progress"]
    assert (env.goals.goal != goals).any(-1).all()
    torch.testing.assert_close(total, gamma**25 * potential(env) - first, atol=1e-5, rtol=1e-5)


def test_after_a_fall_the_potential_is_0(scripted: Scripted, parent: Parent) -> None:
    env = scripted(falls={1: 3}, discount=0.9)
    first = potential(env)
    step = env.step(torch.ones(4, parent.skills.latent_dim))
    expected = torch.tensor([0.9, 0.0, 0.9, 0.9]) * first - first  # no character moves
    torch.testing.assert_close(step.extras["progress"], expected)


def potential(env: TaskEnv) -> torch.Tensor:
    return -Reach().distance(env.env.skeleton, env.env.state(), env.goals.goal)
