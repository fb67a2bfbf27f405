"""Robustness: survival under conditions outside training, and getting up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from pretrain.characters.character import Character
from pretrain.characters.perturbation import perturb
from pretrain.characters.rotations import up_axis
from pretrain.evaluation.intervals import Interval, interval, share_interval
from pretrain.evaluation.rollout import Act, advance, hold_skill, start_anywhere
from pretrain.evaluation.setup import RECOVERY_STEPS, Setup
from pretrain.motion.clip import control_steps
from pretrain.sim.env import CharacterEnv
from pretrain.sim.falls import settle_on_ground

BODIES = {  # of the published body: factors on friction, and on mass and inertia
    "undisturbed": {},
    "friction_50_percent": {"friction": 0.5},
    "friction_150_percent": {"friction": 1.5},
    "mass_80_percent": {"mass": 0.8},
    "mass_120_percent": {"mass": 1.2},
}
TRIAL_SECONDS = 5.0
PUSHES = (100, 200, 500)  # N, level, at the torso
PUSHED_BODY = "torso"
BEFORE_PUSH = control_steps(1.0)
PUSH_STEPS = control_steps(0.2)
UPRIGHT = 0.7  # cosine between the root's z axis and the vertical, at least
HIGH = 0.75  # root height over that of the clips, at least


class DelayedPolicy:
    """A policy whose targets are applied one control step late; the first holds the pose."""

    def __init__(self, act: Act, hinges: int):
        self._act = act
        self._hinges = hinges
        self._pending: np.ndarray | None = None

    def __call__(self, state: np.ndarray, z: np.ndarray) -> np.ndarray:
        pose = state[:, 13 : 13 + self._hinges]
        targets = pose if self._pending is None else self._pending
        self._pending = self._act(state, z)
        return targets


@dataclass(frozen=True)
class Trial:
    """N worlds, each under the own z of a clip that stays on its feet."""

    setup: Setup
    clips: Tensor  # (N,)

    @property
    def z(self) -> Tensor:
        return self.setup.own_z[self.clips]

    def start(self, rng: Generator, character: Character | None = None) -> CharacterEnv:
        env = self.setup.make_env(len(self.clips), TRIAL_SECONDS, rng, character)
        start_anywhere(env, self.clips, rng)
        return env


def robustness(setup: Setup, rng: Generator) -> dict[str, Interval]:
    """Under the own z of the clips that stay on their feet, from anywhere in them, n = worlds.

    Of `BODIES` and latency: share of 5 s before the first fall. Of pushes: share that has not
    fallen 3 s after. `gets_up`: share that stands within 3 s of lying. n = 0 if no clip stays on
    its feet.
    """
    upright = setup.originals[setup.ground.upright[setup.originals]]
    count = setup.conditions.disturbed if len(upright) else 0
    trial = Trial(setup, upright.repeat(count)[:count])
    hinges = setup.data.character.skeleton.num_hinges
    measures = {}
    for name, factors in BODIES.items():
        body = perturb(setup.data.character, **factors) if factors else None
        measures[name] = _survival(trial, setup.skills.act, rng, body)
    delayed = DelayedPolicy(setup.skills.act, hinges)
    measures["latency_1_step"] = _survival(trial, delayed, rng, None)
    measures |= _pushes(trial, rng)
    return {**measures, "gets_up": _getting_up(trial, rng)}


def _survival(trial: Trial, act: Act, rng: Generator, body: Character | None) -> Interval:
    if not len(trial.clips):
        return interval(torch.empty(0))
    env = trial.start(rng, body)
    up = torch.ones(env.num_envs, dtype=torch.bool)
    steps = torch.zeros(env.num_envs)
    for outcome in hold_skill(act, env, trial.z, trial.clips, env.episode_length):
        up = up & ~env.falls.is_down & ~outcome.broken
        if not up.any():
            break
        steps += up
    return interval(steps / env.episode_length)


def _pushes(trial: Trial, rng: Generator) -> dict[str, Interval]:
    """All forces in one batch."""
    measures = {}
    push_trial = Trial(trial.setup, trial.clips.repeat(len(PUSHES)))
    n = len(push_trial.clips)
    force = torch.tensor(PUSHES, dtype=torch.float32).repeat_interleave(len(trial.clips))
    fell, stood = _push(push_trial, force, rng) if n else (torch.empty(0), torch.empty(0).bool())
    for i, newtons in enumerate(PUSHES):
        worlds = slice(i * len(trial.clips), (i + 1) * len(trial.clips))
        upright = ~fell[worlds].bool()[stood[worlds]]
        measures[f"push_{newtons}_newton"] = share_interval(upright.float())
    return measures


def _push(trial: Trial, force: Tensor, rng: Generator) -> tuple[Tensor, Tensor]:
    """Push each world with `force` (N,) N in a random level direction for 0.2 s. Returns which fell
    within 3 s of the push's start, (N,), and which had not fallen before, (N,)."""
    env = trial.start(rng)
    act = trial.setup.skills.act
    n = env.num_envs
    ids = torch.arange(n)
    angle = 2 * torch.pi * torch.rand(n, generator=rng)
    wrench = torch.zeros(n, 6)
    wrench[:, 0] = force * angle.cos()
    wrench[:, 1] = force * angle.sin()
    before = _fell(act, env, trial, BEFORE_PUSH)
    env.backend.push(ids, PUSHED_BODY, wrench)
    during = _fell(act, env, trial, PUSH_STEPS)
    env.backend.push(ids, PUSHED_BODY, torch.zeros(n, 6))
    after = _fell(act, env, trial, RECOVERY_STEPS - PUSH_STEPS)
    return during | after, ~before


def _fell(act: Act, env: CharacterEnv, trial: Trial, steps: int) -> Tensor:
    """Hold each z for `steps`, or until all have fallen. Returns which were down or broke, (N,)
    bool."""
    fell = env.falls.is_down
    for outcome in hold_skill(act, env, trial.z, trial.clips, steps):
        fell = fell | env.falls.is_down | outcome.broken
        if fell.all():
            break
    return fell


def _getting_up(trial: Trial, rng: Generator) -> Interval:
    """Share of the lying worlds that have stood within 3 s."""
    if not len(trial.clips):
        return interval(torch.empty(0))
    env = trial.start(rng)
    settle_on_ground(env.backend, env.skeleton, env.library, rng)
    lay = ~stands(env)
    risen = torch.zeros_like(lay)
    broken = torch.zeros_like(lay)
    for _ in range(RECOVERY_STEPS):
        broken = broken | advance(trial.setup.skills.act, env, trial.z, trial.clips).broken
        risen = risen | (stands(env) & ~broken)
    return share_interval(risen[lay].float())


def stands(env: CharacterEnv) -> Tensor:
    """Root up and high enough, nothing but the feet on the ground: (N,) bool."""
    state = env.state()
    up = up_axis(state.root_rot)[:, 2]
    high = state.root_pos[:, 2] > HIGH * env.falls.ground.standing
    return (up > UPRIGHT) & high & ~env.touches()
