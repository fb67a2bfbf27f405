"""The last stage: iterative learning control on the phase of the clips, then the policy learns the
corrections.

Nine tenths of the squared error between a skill's poses and its clip's are the same at every
repetition of the same phase (docs/training.md), and a policy gradient carries almost no signal
about them (pretrain/assist/imitation.py). So a correction for each phase is added to the actions of
a fixed policy and updated by the mean error seen at that phase. (Iterative learning control:
Arimoto, Kawamura and Miyazaki 1984, "Bettering operation of robots by learning".) The corrections
depend on the phase, which a published policy does not observe. In the second half a policy
therefore learns to act as the corrected one does, in states that it reaches itself (DAgger, Ross et
al. 2011), without rewards or values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Generator, Tensor

from pretrain.assist.assisted_env import AssistedEnv
from pretrain.rl.adam import Adam
from pretrain.rl.learner import Learner, Scalars
from pretrain.rl.nets import GaussianPolicy
from pretrain.rl.ppo import Metrics
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Batch, Noise, SampledAction, Step, collect
from pretrain.sim.env import ALL, Rows

RATE = 0.05  # share of a phase's mean error that is corrected in one iteration
MIN_COUNT = 8  # a phase with fewer samples in an iteration is corrected by less
LEG_SHARE = 0.5  # weight of a leg's error over that of an arm's: legs are needed for balance
NEAR = 0.8  # tracking error up to which a world is corrected in full
FAR = 1.6  # tracking error from which on a world is not corrected
REPLAY_SIZE = 131_072  # rows
REPLAY_BATCH = 65_536  # rows sampled per iteration
MINIBATCH = 1024
LR = 5e-4
LR_DECAY_SHARE = 1 / 3  # last share of the learning samples, in which the learning rate falls to 0


class PhaseObservationEnv:
    """`env` with the observations `phase_index` (N,) of each world's reference, and `trust` (N,),
    the share of the correction that is applied."""

    def __init__(self, env: AssistedEnv):
        self.env = env
        self.num_envs = env.num_envs

    def observe(self, ids: Tensor | None = None) -> Batch:
        return self.env.observe(ids) | self._phase(ALL if ids is None else ids)

    def _phase(self, ids: Rows) -> Batch:
        character_env = self.env.env
        tracker = self.env.tracker
        is_up = ~character_env.falls.is_down
        follows = is_up & (tracker.clip == self.env.ase_env.z_clip)
        error = tracker.tracking_error(character_env.windows(ids), ids)
        trust = ((FAR - error) / (FAR - NEAR)).clamp(0, 1)
        return {"phase_index": tracker.phase_index(ids), "trust": trust * follows[ids]}

    def step(self, action: Tensor) -> Step:
        step = self.env.step(action)
        return replace(step, next_obs=step.next_obs | self._phase(ALL))

    def reset(self, ids: Tensor) -> None:
        self.env.reset(ids)


class PhaseCorrectedPolicy:
    """`policy` plus an action correction for each of `num_phases` phases of the clips, (num_phases,
    J).

    Updates of `legs` (J,) bool are scaled by LEG_SHARE."""

    def __init__(self, policy: GaussianPolicy, num_phases: int, legs: Tensor):
        self.policy = policy
        self._share = torch.where(legs, LEG_SHARE, 1.0)
        self.corrections = torch.zeros(num_phases, len(legs))

    def mean(self, obs: Batch) -> Tensor:
        return self.policy(obs) + obs["trust"][..., None] * self.corrections[obs["phase_index"]]

    def act(self, obs: Batch, noise: Tensor) -> SampledAction:
        mean = self.mean(obs)
        action = mean + self.policy.std * noise
        return SampledAction(mean, action, self.policy.logp(mean, action))

    def learn(self, phase_index: Tensor, trust: Tensor, error: Tensor) -> None:
        """Update the corrections at `phase_index` (n,) by the joints' `error` (n, J) one step
        later, in units of actions, weighted by `trust` (n,)."""
        count = torch.bincount(phase_index, trust, minlength=len(self.corrections)).clamp_min(
            MIN_COUNT
        )
        total = torch.zeros_like(self.corrections).index_add(0, phase_index, trust[:, None] * error)
        self.corrections += RATE * self._share * total / count[:, None]


@dataclass
class Refinement:
    """Finds the corrections in the first `correcting` samples, then fits `policy` to them in
    `learning` samples."""

    env: AssistedEnv
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
        optimizer = Adam(self.policy.body.parameters(), LR)
        keys = (*self.policy.inputs.names, "corrected_action")
        self.learner = Learner(
            "refine", keys, self._imitation_loss, optimizer, epochs=1, minibatch=MINIBATCH
        )
        obs = self.env.observe()
        example = {name: obs[name][0] for name in self.policy.inputs.names}
        self.replay = Replay(REPLAY_SIZE, **example, corrected_action=self.noise.value[0])

    def iterate(self) -> Scalars:
        """Run one iteration of the present stage."""
        scalars = self._correct() if self.samples < self.correcting else self._learn()
        self.iteration += 1
        self.samples += self.horizon * self.env.num_envs
        return scalars

    def _correct(self) -> Scalars:
        batch, scalars = self._collect(self.teacher)
        self.teacher.learn(
            batch["phase_index"], batch["trust"] * ~batch["failed"], batch["pose_error"]
        )
        return scalars

    def _learn(self) -> Scalars:
        batch, scalars = self._collect(self.policy)
        with torch.no_grad():
            batch["corrected_action"] = self.teacher.mean(batch)
        self.replay.add(**{name: batch[name] for name in self.replay.rows})
        left = 1 - (self.samples - self.correcting) / self.learning
        self.learner.optimizer.lr = LR * min(1.0, left / LR_DECAY_SHARE)
        return scalars | self.learner.fit(self.replay.sample(REPLAY_BATCH, self.rng), self.rng)

    def _collect(self, policy: PhaseCorrectedPolicy | GaussianPolicy) -> tuple[Batch, Scalars]:
        rollout = collect(PhaseObservationEnv(self.env), policy, self.noise, self.horizon, self.rng)
        batch = {**rollout.flatten(), "failed": rollout.terminated.flatten()}
        error = batch["pose_error"][batch["trust"] > 0]
        return batch, {
            # 0 without worlds
            "pose_error": float(error.square().sum() / max(error.numel(), 1)) ** 0.5,
            "corrections": float(self.teacher.corrections.square().mean().sqrt()),
            "terminated": float(rollout.terminated.float().mean()),
        }

    def _imitation_loss(self, batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        return (self.policy(batch) - batch["corrected_action"]).square().mean(), {}

    def snapshot(self) -> dict[str, Any]:
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.learner.optimizer.state_dict(),
            "corrections": self.teacher.corrections,
            "replay": self.replay.snapshot(),
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
        self.replay.restore(tree["replay"])
        self.env.restore(tree["env"])
        self.noise.value = tree["noise"]
        self.rng.set_state(tree["rng"])
        self.iteration = tree["iteration"]
        self.samples = tree["samples"]
        self.seconds = tree["seconds"]
