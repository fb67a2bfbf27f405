"""Rolls out a controller or random skills over whole episodes, per control step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from hlc.goal_env import GoalEnv
from hlc.goals import Goals
from hlc.task_env import on_sphere
from hlc.tasks.task import Task
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE
from pretrain.sim.env import CharacterEnv
from skills_store.runtime.onnx_session import Array

Decide = Callable[[Array, Array], Array]  # state (E, S), goal (E, G) -> z (E, D), once per decision


class Actor(Protocol):
    """Maps decisions to joint targets, as `SkillLibrary` does."""

    @property
    def latent_dim(self) -> int: ...
    def act(self, state: Array, z: Array) -> Array: ...


@dataclass(frozen=True)
class Episodes:
    """One episode in each of E worlds over T control steps, all (T, E)."""

    reward: Tensor  # 0 from the fall on
    # to the step's goal, in the task's unit; NaN for a task without a distance
    distance: Tensor
    success: Tensor  # bool: a standing character meets that goal
    since: Tensor  # control steps since the goal appeared, from 1
    last: Tensor  # bool: the goal changes after this step
    standing: Tensor  # bool: not fallen yet


def episodes(
    decide: Decide,
    skills: Actor,
    env: CharacterEnv,
    task: Task,
    *,
    llc_steps: int,
    rng: Generator,
) -> Episodes:
    """`env.episode_length` steps of every world from its start. A fall does not reset; the reward
    after it is 0."""
    n = env.num_envs
    world = GoalEnv(env, task, Goals(task, n, llc_steps, rng))
    standing = torch.ones(n, dtype=torch.bool)
    since = torch.zeros(n, dtype=torch.long)
    z = np.zeros((n, skills.latent_dim), np.float32)
    rows: list[Episodes] = []
    for step in range(env.episode_length):
        if step % llc_steps == 0:
            z = decide(env.state().flatten().numpy(), world.goals.goal.numpy())
        targets = skills.act(env.state().flatten().numpy(), z)
        outcome = world.advance(torch.from_numpy(targets))
        since = since + 1
        standing = standing & ~outcome.failed
        reward = standing * outcome.reward
        goal = world.goals.goal
        distance = measure_distance(task, env.skeleton, outcome.state, goal)
        success = standing & task.success(env.skeleton, outcome.state, goal)
        last = torch.zeros(n, dtype=torch.bool)
        if step % llc_steps == llc_steps - 1:
            last = world.advance_goals()
        rows.append(Episodes(reward, distance, success, since, last, standing))
        since = since * ~last
    return stack_steps(rows)


def stack_steps(steps: Sequence[Episodes]) -> Episodes:
    """Episodes of T steps from those of one step, (E,) each."""
    stacked: dict[str, Tensor] = {}
    for field in fields(Episodes):
        stacked[field.name] = torch.stack([getattr(step, field.name) for step in steps])
    return Episodes(**stacked)


def measure_distance(task: Task, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
    """The task's distance (N,); NaN where it has none."""
    distance = task.distance(skeleton, state, goal)
    return torch.full(state.shape, torch.nan) if distance is None else distance


class RandomSkills:
    """Baseline: skills uniform on the sphere, each held for `shortest` to `longest` decisions,
    independent of the goal."""

    def __init__(self, n: int, dim: int, shortest: int, longest: int, rng: Generator):
        self._span = (shortest, longest + 1)
        self._rng = rng
        self._z = torch.zeros(n, dim)
        self._left = torch.zeros(n, dtype=torch.long)

    def __call__(self, state: Array, goal: Array) -> Array:
        expired = (self._left <= 0).nonzero()[:, 0]
        self._z[expired] = on_sphere(
            torch.randn(len(expired), self._z.shape[1], generator=self._rng)
        )
        self._left[expired] = torch.randint(*self._span, (len(expired),), generator=self._rng)
        self._left -= 1
        return self._z.numpy()


def returns(e: Episodes, llc_steps: int) -> Tensor:
    """Sum over an episode's decisions of the mean task reward in each, (E,). At most T /
    llc_steps."""
    return e.reward.sum(0) / llc_steps


def survival(e: Episodes) -> Tensor:
    """Share of the episode before a fall, (E,)."""
    return e.standing.float().mean(0)


def falls(e: Episodes) -> tuple[int, float]:
    """How many characters fell, and the minutes they stood, summed."""
    fallen = int((~e.standing[-1]).sum())
    return fallen, float(e.standing.sum()) / CONTROL_RATE / 60


def successes(e: Episodes) -> Tensor:
    """Whether each goal was met in its last step, (n,) as 0 or 1; 0 for fallen characters."""
    return e.success[e.last].float()


def times_to_goal(e: Episodes) -> Tensor:
    """Seconds from a goal's appearance to the first step in which it was met, for the goals that
    were, (n,)."""
    met = torch.zeros(e.success.shape[1], dtype=torch.bool)
    times = []
    for success, since, last in zip(e.success, e.since, e.last, strict=True):
        times.append(since[success & ~met])
        met = (met | success) & ~last
    return torch.cat(times) / CONTROL_RATE


def final_distances(e: Episodes) -> Tensor:
    """Distances in the last step before each change of goal, of characters that stand, (n,);
    none for a task without a distance."""
    distances = e.distance[e.last & e.standing]
    return distances[~distances.isnan()]


def distance_curve(e: Episodes) -> tuple[Tensor, Tensor]:
    """Mean distance (K,) of standing characters, 1 ... K control steps after their goal appeared;
    rows in each (K,).

    The curve ends before the first step without data."""
    valid = e.standing & ~e.distance.isnan()
    when = e.since[valid] - 1
    distance = e.distance[valid]
    rows = torch.bincount(when)
    total = torch.bincount(when, weights=distance.double())
    empty = (rows == 0).nonzero()
    end = int(empty[0]) if len(empty) else len(rows)
    return (total[:end] / rows[:end]).float(), rows[:end]
