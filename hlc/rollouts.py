"""What a controller does over whole episodes, control step by control step; and the same for skills
drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from hlc.goals import Goals
from hlc.skill_env import on_sphere
from hlc.tasks.task import Task
from pretrain.sim.env import CharacterEnv
from skills_store.runtime.library import SkillLibrary
from skills_store.runtime.onnx_session import Array

Decide = Callable[[Array, Array], Array]  # state (E, S), goal (E, G) -> z (E, D), once per decision


@dataclass(frozen=True)
class Episodes:
    """One episode in each of E worlds over T control steps, all (T, E)."""

    reward: Tensor  # 0 from the fall on
    distance: Tensor  # m, to the goal that holds in this step
    since: Tensor  # control steps that the goal has been there, from 1
    last: Tensor  # bool: the goal changes after this step
    standing: Tensor  # bool: not fallen yet


def episodes(
    decide: Decide,
    skills: SkillLibrary,
    env: CharacterEnv,
    task: Task,
    *,
    llc_steps: int,
    rng: Generator,
) -> Episodes:
    """`env.episode_length` steps of every world from its start. Who has fallen lies there and earns
    nothing more."""
    n = env.num_envs
    env.reset(torch.arange(n))
    goals = Goals(task, n, llc_steps, rng)
    goals.draw(torch.arange(n), env.state())
    standing = torch.ones(n, dtype=torch.bool)
    since = torch.zeros(n, dtype=torch.long)
    z = np.zeros((n, skills.latent_dim), np.float32)
    rows = []
    for step in range(env.episode_length):
        if step % llc_steps == 0:
            z = decide(env.state().flatten().numpy(), goals.goal.numpy())
        outcome = env.step(torch.from_numpy(skills.act(env.state().flatten().numpy(), z)))
        standing = standing & ~(outcome.fell | outcome.broken)
        since = since + 1
        state = env.state()
        reward = standing * task.reward(env.skeleton, state, goals.goal)
        distance = task.distance(env.skeleton, state, goals.goal)
        last = torch.zeros(n, dtype=torch.bool)
        if step % llc_steps == llc_steps - 1:
            last = goals.decided(state)
        rows.append((reward, distance, since, last, standing))
        since = since * ~last
    return Episodes(*(torch.stack(column) for column in zip(*rows, strict=True)))


class RandomSkills:
    """The baseline: skills uniform on the sphere, each held for `shortest` to `longest` decisions.
    Sees no goal."""

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


def final_distances(e: Episodes) -> Tensor:
    """Distances in the last step before each change of goal, of characters that stand, (n,) m."""
    return e.distance[e.last & e.standing]


def distance_curve(e: Episodes) -> tuple[Tensor, Tensor]:
    """Mean distance (K,) m of standing characters, 1 ... K control steps after their goal appeared;
    rows in each (K,).

    It ends where the first episodes have no data.
    """
    when = e.since[e.standing] - 1
    distance = e.distance[e.standing]
    rows = torch.bincount(when)
    total = torch.bincount(when, weights=distance.double())
    empty = (rows == 0).nonzero()
    end = int(empty[0]) if len(empty) else len(rows)
    return (total[:end] / rows[:end]).float(), rows[:end]
