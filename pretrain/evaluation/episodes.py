"""Random-skill episodes of a published library: random z, redrawn every 0 to 5 s."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.ase.latents import LatentSampling
from pretrain.evaluation.coverage import Coverage
from pretrain.evaluation.falls import FallCounter
from pretrain.evaluation.jerk import jerk
from pretrain.evaluation.rollout import RandomSkillStep, random_skill_rollout
from pretrain.evaluation.setup import Setup
from pretrain.motion.clip import CONTROL_RATE, control_steps
from pretrain.motion.library import MotionLibrary
from pretrain.sim.env import CharacterEnv

# Rollouts begin in a clip's state, so their first second would count as coverage of that clip.
BURN_IN = control_steps(1.0)
SAMPLED = 10  # steps between the windows kept for fidelity


@dataclass(frozen=True)
class Episodes:
    """Random-skill rollouts of E worlds over T steps; rows after a final fall are left out."""

    clip: Tensor  # (E,) index of each one's start clip
    lengths: Tensor  # (E,) steps before a final fall
    falls: FallCounter  # with or without recovery
    recovered: Tensor  # (F,) per fall that led to lying: 1 if up within 3 s
    agreement: Tensor  # (E,) mean <z, enc(window)> while standing
    style: Tensor | None  # (E,) mean likeness to the clips while standing, where it is published
    speed: Tensor  # (E,) mean level speed while standing, m/s
    jerk: Tensor  # (E,) mean absolute jerk of the joints while standing, rad/s^3
    coverage: dict[str, float]
    windows: Tensor  # (M, W * F) a sample of the style windows while standing
    broken: int  # worlds whose simulation broke


def random_sampling(setup: Setup) -> LatentSampling:
    """Random skills, each for a random time."""
    longest = control_steps(setup.conditions.longest_skill)
    return LatentSampling(setup.skills.latent_dim, 1, longest, 0.0)


def random_skill_episodes(setup: Setup, rng: Generator) -> Episodes:
    """Episodes of the deterministic policy, from random states of the clips."""
    env = setup.make_env(setup.conditions.episodes, setup.conditions.seconds, rng)
    env.reset(torch.arange(env.num_envs))
    return observe_episodes(setup, env, random_sampling(setup), rng)


def observe_episodes(
    setup: Setup, env: CharacterEnv, sampling: LatentSampling, rng: Generator
) -> Episodes:
    """Episodes from the worlds' present states."""
    began_in = env.clip.clone()  # a broken world restarts, in another clip
    act = setup.skills.act
    observer = _Observer(setup, env)
    rollout = random_skill_rollout(act, env, sampling, rng, setup.nearest_clip)
    for number, step in enumerate(rollout):
        observer.update(number, step)
    return observer.episodes(began_in)


class _Observer:
    """Accumulates over the steps of an episode."""

    def __init__(self, setup: Setup, env: CharacterEnv):
        n = env.num_envs
        self._skills = setup.skills
        self._env = env
        self._coverage = Coverage(setup.targets, setup.scale)
        self._falls = FallCounter(n)
        self._counted = torch.zeros(n)
        self._agreement = torch.zeros(n)
        self._style = torch.zeros(n)
        self._speed = torch.zeros(n)
        self._jerk = torch.zeros(n)
        self._stood = torch.ones(n, dtype=torch.bool)
        self._fallen = torch.zeros(n, dtype=torch.bool)
        self._angles: list[Tensor] = []
        self._windows: list[Tensor] = []
        self._recovered: list[Tensor] = []

    def update(self, number: int, step: RandomSkillStep) -> None:
        env = self._env
        up = step.standing
        began = self._falls.update(env.falls.steps_down, step.outcome.broken, step.clip_changed)
        self._fallen = self._fallen | began
        recovered = step.outcome.recovered
        ended = self._stood & self._fallen & (recovered | step.outcome.timed_out_on_ground)
        self._recovered.append(recovered[ended].float())
        self._fallen = self._fallen & env.falls.is_down
        self._stood = up
        self._counted += up
        self._measure_skill(step)
        self._speed += up * env.state().root_vel[:, :2].norm(dim=-1)
        self._angles = [*self._angles[-3:], env.state().joint_pos.clone()]
        if len(self._angles) == 4:
            self._jerk += up * jerk(torch.stack(self._angles), CONTROL_RATE)
        if number >= BURN_IN:
            self._coverage.update(env.windows()[up])
            if number % SAMPLED == 0:
                self._windows.append(env.windows()[up])

    def _measure_skill(self, step: RandomSkillStep) -> None:
        states = self._env.states.numpy()
        code = torch.from_numpy(self._skills.encode(states))
        self._agreement += step.standing * (code * step.z).sum(-1)
        if self._skills.discriminator is not None:
            self._style += step.standing * torch.from_numpy(self._skills.style(states))

    def episodes(self, began_in: Tensor) -> Episodes:
        steps = self._counted.clamp_min(1)
        has_style = self._skills.discriminator is not None
        return Episodes(
            clip=began_in,
            lengths=self._counted,
            falls=self._falls,
            recovered=torch.cat(self._recovered),
            agreement=self._agreement / steps,
            style=self._style / steps if has_style else None,
            speed=self._speed / steps,
            jerk=self._jerk / (self._counted - 3).clamp_min(1),
            coverage=self._coverage.per_clip(),
            windows=torch.cat([*self._windows, self._env.windows()[:0]]),
            broken=self._env.num_broken,
        )


def by_start_clip(clip: Tensor, values: Tensor, library: MotionLibrary) -> dict[str, Tensor]:
    """`values` of the episodes (E,) that began in each clip or its mirror image, by the name of
    the original. Clips in which no episode began are left out."""
    groups: dict[str, list[int]] = {}
    for index, original in enumerate(library.originals):
        groups.setdefault(library.names[original], []).append(index)
    masks = {name: torch.isin(clip, torch.tensor(group)) for name, group in groups.items()}
    return {name: values[mask] for name, mask in masks.items() if mask.any()}
