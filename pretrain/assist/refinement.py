"""The last stage: iterative learning control on the phase of the clips, then the policy learns the corrections.

Nine tenths of the squared error between a skill's poses and its clip's are the same at every repetition of the same phase
(docs/training-log.md), and a policy gradient carries almost no signal about them (pretrain/assist/imitation.py). So a
correction for each phase is added to the actions of a fixed policy and updated by the mean error seen at that phase.
(Iterative learning control: Arimoto, Kawamura and Miyazaki 1984, "Bettering operation of robots by learning".) The
corrections depend on the phase, which a published policy does not observe. In the second half a policy therefore learns to
act as the corrected one does, in states that it reaches itself (DAgger, Ross et al. 2011), without rewards, values or noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Generator, Tensor

from pretrain.ase.latents import SkillEnv
from pretrain.assist.reference_tracker import ALL, Rows
from pretrain.rl.learner import Learner, Scalars
from pretrain.rl.nets import GaussianPolicy
from pretrain.rl.ppo import Metrics
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Batch, Noise, Step, collect

RATE = 0.05  # a turn, of a moment's mean error
SELDOM = 8  # a moment that came less often is corrected by less
LEGS = 0.5  # what a leg's error counts of an arm's: legs are for balance, too
# from its moment, as the leash measures: up to NEAR a world is corrected in full, from FAR on not at all
NEAR, FAR = 0.8, 1.6
REMEMBERED = 131_072  # rows
REPEATED = 65_536  # of them, in each turn
MINIBATCH = 1024
LR, SETTLES = 5e-4, 1 / 3  # in the last third it falls to nothing


class PhaseObservation:
    """`env`, which also says which moment of the clips each world is at (N,), and how much it is to be corrected there (N,)."""

    def __init__(self, env: SkillEnv):
        self.env, self.num_envs = env, env.num_envs

    def observe(self, ids: Tensor | None = None) -> Batch:
        return self.env.observe(ids) | self._told(ALL if ids is None else ids)

    def _told(self, ids: Rows) -> Batch:
        env, guide = self.env.env, self.env.env.guide
        in_time = (guide.clip == self.env.z_clip)[ids] & (env.falls.down == 0)[ids]
        trust = ((FAR - guide.apart(env.windows(ids), ids)) / (FAR - NEAR)).clamp(0, 1)
        return {"moment": guide.moment_index(ids), "trust": trust * in_time}

    def step(self, action: Tensor) -> Step:
        step = self.env.step(action)
        return replace(step, next_obs=step.next_obs | self._told(ALL))

    def reset(self, ids: Tensor) -> None:
        self.env.reset(ids)


class PhaseCorrectedPolicy:
    """`policy`, and for every moment of the clips (M,) what is added to its actions there, (M, J)."""

    def __init__(self, policy: GaussianPolicy, moments: int, legs: Tensor):
        self.policy, self._share = policy, torch.where(legs, LEGS, 1.0)
        self.corrections = torch.zeros(moments, len(legs))

    def mean(self, obs: Batch) -> Tensor:
        return self.policy(obs) + obs["trust"][..., None] * self.corrections[obs["moment"]]

    def act(self, obs: Batch, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean = self.mean(obs)
        action = mean + self.policy.std * noise
        return action, self.policy.logp(mean, action)

    def learn(self, moment: Tensor, trust: Tensor, error: Tensor) -> None:
        """Worlds at `moment` (n,) were short of their poses by `error` (n, J), in units of actions, a step later."""
        count = torch.bincount(moment, trust, minlength=len(self.corrections)).clamp_min(SELDOM)
        total = torch.zeros_like(self.corrections).index_add(0, moment, trust[:, None] * error)
        self.corrections += RATE * self._share * total / count[:, None]


@dataclass
class Refinement:
    """First `correcting` samples in which the corrections are found, then `learning` ones in which `policy` learns them."""

    env: SkillEnv
    teacher: PhaseCorrectedPolicy
    policy: GaussianPolicy
    noise: Noise
    rng: Generator
    horizon: int
    correcting: int
    learning: int
    iteration: int = 0
    samples: int = 0
    seconds: float = 0.0
    learner: Learner = field(init=False)
    memory: Replay = field(init=False)

    def __post_init__(self) -> None:
        optimizer = torch.optim.Adam(self.policy.body.parameters(), LR, fused=True)
        keys = (*self.policy.inputs.names, "wanted")
        self.learner = Learner("refine", keys, self._off, optimizer, epochs=1, minibatch=MINIBATCH)
        one = {name: x[0] for name, x in self.env.observe().items() if name in keys}
        self.memory = Replay(REMEMBERED, **one, wanted=self.noise.value[0])

    def turn(self) -> Scalars:
        """One turn of either stage, counted."""
        scalars = self._corrected() if self.samples < self.correcting else self._learned()
        self.iteration += 1
        self.samples += self.horizon * self.env.num_envs
        return scalars

    def _corrected(self) -> Scalars:
        batch, scalars = self._played(self.teacher)
        self.teacher.learn(batch["moment"], batch["trust"] * ~batch["failed"], batch["pose_error"])
        return scalars

    def _learned(self) -> Scalars:
        batch, scalars = self._played(self.policy)
        with torch.no_grad():
            batch["wanted"] = self.teacher.mean(batch)
        self.memory.add(**{name: batch[name] for name in self.memory.rows})
        left = 1 - (self.samples - self.correcting) / self.learning
        for group in self.learner.optimizer.param_groups:
            group["lr"] = LR * min(1.0, left / SETTLES)
        return scalars | self.learner.fit(self.memory.sample(REPEATED, self.rng), self.rng)

    def _played(self, policy: PhaseCorrectedPolicy | GaussianPolicy) -> tuple[Batch, Scalars]:
        rollout = collect(PhaseObservation(self.env), policy, self.noise, self.horizon, self.rng)
        batch = {**rollout.flat(), "failed": rollout.terminated.flatten()}
        error = batch["pose_error"][batch["trust"] > 0]
        return batch, {
            "pose_error": float(error.square().sum() / max(error.numel(), 1)) ** 0.5,  # of nobody, 0
            "corrections": float(self.teacher.corrections.square().mean().sqrt()),
            "terminated": float(rollout.terminated.float().mean()),
        }

    def _off(self, batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        return (self.policy(batch) - batch["wanted"]).square().mean(), {}

    def snapshot(self) -> dict[str, Any]:
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.learner.optimizer.state_dict(),
            "corrections": self.teacher.corrections,
            "memory": self.memory.snapshot(),
            "env": self.env.snapshot(),
            "noise": self.noise.value,
            "rng": self.rng.get_state(),
            "iteration": self.iteration,
            "samples": self.samples,
            "seconds": self.seconds,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        self.policy.load_state_dict(tree["policy"])
        self.learner.optimizer.load_state_dict(tree["optimizer"])
        self.teacher.corrections = tree["corrections"]
        self.memory.restore(tree["memory"])
        self.env.restore(tree["env"])
        self.noise.value = tree["noise"]
        self.rng.set_state(tree["rng"])
        self.iteration, self.samples, self.seconds = tree["iteration"], tree["samples"], tree["seconds"]
