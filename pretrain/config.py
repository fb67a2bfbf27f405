"""Configuration of pretraining: Hydra's groups become one frozen model, and a key that does not exist is refused.

Names are the field's (MimicKit's where it has the notion).
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pretrain.rl.setting import Count, Frozen, NotNegative, Positive, Rate, Seconds, Seed, Share
from skills_store import places
from skills_store.manifest import Name

Even = Annotated[int, Field(gt=0, multiple_of=2)]  # units that the body's reflection swaps, half with half
Layers = Annotated[tuple[Even, ...], Field(min_length=1)]


class LatentConfig(Frozen):
    """Which skill a world is asked for, and for how long (pretrain/ase/latents.py)."""

    latent_dim: Annotated[int, Field(ge=2)] = 64  # numbers of z, a point on the unit sphere
    latent_time_min: NotNegative = 0.0  # s between two changes of skill, uniform up to latent_time_max
    latent_time_max: Seconds = 5.0
    clip_latent_prob: Share = 0.5  # share of latents that are a clip's own, not drawn from the sphere
    near_prob: Share = 0.0  # of an episode's first latents that are not a clip's own: share drawn around its clip's
    # control steps: until the clip needs no assistance and its losses lie further apart than this; null: always
    near_steps: Positive | None = None
    near_after: Share = 0.0  # of near_prob, what is left from then on: the way to other clips is practised
    # a skill's return ends with it, as in ASE; otherwise it goes on under the next, and to be slow when that comes, pays
    own_return: bool = False

    @model_validator(mode="after")
    def _shortest_to_longest(self) -> LatentConfig:
        if self.latent_time_min > self.latent_time_max:
            raise ValueError(f"latent_time_min {self.latent_time_min} is over latent_time_max {self.latent_time_max}")
        return self


class PPOConfig(Frozen):
    """The policy, its value net, and how they learn from a rollout (pretrain/rl/ppo.py)."""

    horizon: Count = 8  # control steps of each world between two fits
    gamma: Share = 0.97  # per control step
    lam: Share = 0.95  # of GAE
    clip: Positive = 0.2  # of the probability ratio, PPO's epsilon
    lr: Rate = 5e-5  # first value; steered towards target_kl. 3e-4 takes the warm start apart
    target_kl: Positive = 0.04  # nats, mean over the minibatches of one fit
    epochs: Count = 2  # times through a rollout
    minibatch: Count = 1024  # rows
    value_lr: Positive = 5e-4
    value_epochs: Count = 2
    value_minibatch: Count = 1024
    hidden: Layers = (256, 256)
    value_hidden: Layers = (256, 256)
    action_std: Positive = 0.1  # in units of the action scale; wider noise is told from mocap at once
    action_std_final: Positive = 0.05  # reached, by a constant factor a sample, after `action_std_samples`
    action_std_samples: Count = 8_000_000
    average_decay: Annotated[float, Field(ge=0, lt=1)] = 0.99  # a turn, of the averaged weights that are published
    noise_color: Annotated[float, Field(ge=0, lt=1)] = 0.5  # correlation of exploration from step to step
    action_bound: Positive = 2.0  # in units of the action scale: means beyond it are pulled back
    action_bound_weight: NotNegative = 1.0


class DiscConfig(Frozen):
    """The style prior: its net, its loss and what it pays (pretrain/ase/style.py)."""

    hidden: Layers = (256, 256)
    lr: Positive = 1e-4
    rows: Count = 4096  # of each rollout, in minibatches of `minibatch`
    minibatch: Count = 1024
    disc_reward_weight: NotNegative = 0.5
    disc_reward_scale: Positive = 2.0  # of -log(1 - D)
    disc_grad_penalty: NotNegative = 3.0  # at 10, standing still earns as much as walking
    disc_logit_reg: NotNegative = 0.01  # of the last layer's squared weights
    disc_buffer_size: Count = 100_000  # windows remembered
    disc_replay_share: Share = 0.5  # remembered windows per fresh one


class EncConfig(Frozen):
    """The encoder, what being told apart pays, and how far skills are to differ (pretrain/ase/skill.py)."""

    hidden: Layers = (256, 256)
    lr: Positive = 2e-4
    rows: Count = 4096  # of each rollout
    minibatch: Count = 1024
    enc_reward_weight: NotNegative = 0.5
    diversity_weight: NotNegative = 0.01
    diversity_tar: Positive = 1.0  # mean squared difference of actions over 0.5 (1 - cosine) of their latents


class WarmConfig(Frozen):
    """Before any simulation: the encoder learns to tell the clips apart, the policy to aim along them."""

    encoder_steps: Annotated[int, Field(ge=0)] = 500  # gradient steps
    clone_steps: Annotated[int, Field(ge=0)] = 1500  # gradient steps
    batch: Count = 1024
    lr: Positive = 1e-3


class CurriculumConfig(Frozen):
    """Assistance forces that decay, and where episodes begin (pretrain/assist/curriculum.py, forces.py)."""

    assist_start: Share = 0.7  # strength of the assistance, 1 is full
    assist_steps: Positive = 60.0  # control steps: it weakens while a clip's episodes last longer
    assist_rate: Share = 0.0125  # by this share an iteration
    # clips whose root's up axis stays above this, at a steady velocity, get the upright torque; others the pull towards
    # the reference
    steady_above: Share = 0.5
    focus: Annotated[float, Field(ge=1)] = 3.0  # how much more or less often than its weight says a clip is begun in


class LeashConfig(Frozen):
    """Early termination by the tracking error, and what coming nearer pays (pretrain/assist/tracking_termination.py)."""

    length: Positive = 1.3  # root mean square over window features, in their spread over the clips
    # samples: from here on the error is that to the reference at its phase, in the clip's own spread; null is never
    timed_from: Annotated[int, Field(ge=0)] | None = None
    liveliest: Positive | None = None  # from then on, upper bound on a clip's own spread; null: unbounded
    grace: NotNegative = 2.0  # s to come near, after a change of skill
    lag: NotNegative = 0.5  # s, from then on: so long the limit may be exceeded at any other time
    nearer_reward_weight: NotNegative = 5.0  # of each unit that a step brings it nearer to its clip


class ImitationConfig(Frozen):
    """Tracking reward, cloning loss and pose gradient (pretrain/assist/imitation.py)."""

    reward_weight: NotNegative = 0.0
    reward_scale: Positive = 0.5  # root mean square over window features, in their spread over the clips
    aim_weight: NotNegative = 0.0  # of the cloning loss at full assistance; none below CLONING_OFF_BELOW
    pose_weight: NotNegative = 0.0  # of the gradient on poses
    pose_from: Annotated[int, Field(ge=0)] = 0  # samples: up to here that weighs nothing


class RecoveryConfig(Frozen):
    """Getting up, where there are clips that show it (pretrain/sim/falls.py)."""

    patience: Positive = 4.0  # s; the clips take 3 and 3.8
    protected_prob: Share = 0.05  # of episodes that a fall does not end at once
    lying_prob: Share = 0.05  # of episodes that begin lying
    lift_start: Share = 0.5  # strength of the get-up assistance (pretrain/assist/getup.py)
    lift_rate: Share = 0.0125  # by this share an iteration it weakens
    rise_reward_weight: NotNegative = 1.0


class RefineConfig(Frozen):
    """Iterative learning control on the phase of the clips (pretrain/assist/refinement.py)."""

    correct: Annotated[int, Field(ge=0)] = 0  # samples in which the corrections are found; 0: not at all
    learn: Count = 1_000_000  # samples in which the policy learns them
    after: tuple[Count, ...] = ()  # so many samples of training, where there are more, and always after the last one

    @model_validator(mode="after")
    def _one_after_the_other(self) -> RefineConfig:
        if list(self.after) != sorted({*self.after}):
            raise ValueError(f"after {list(self.after)} does not rise")
        return self


class EvalConfig(Frozen):
    """Of the card that is published with the library (pretrain/evaluate.py)."""

    episodes: Annotated[int, Field(ge=2)] = 1024  # of one alone there is no interval
    seed: Seed = 1234


class PretrainConfig(Frozen):
    """A run. One turn of it is a rollout of `num_envs` worlds over `ppo.horizon` control steps, and the fits on it."""

    name: Name = "humanoid"  # of the published library
    character: str = "humanoid"  # of pretrain/characters/character.py
    motions: str = "locomotion"  # a bundled recipe, or a path to one
    engine: str = "mujoco"  # of pretrain/sim/backend.py
    threads: Annotated[int, Field(ge=0)] = 0  # 0: every core
    seed: Seed = 0
    num_envs: Count = 1024  # worlds simulated at once
    episode_length: Seconds = 10.0
    num_disc_obs_steps: Annotated[int, Field(ge=2)] = 3  # frames of a style window, a control step apart
    samples: Count = 16_000_000  # control steps, summed over the worlds; refining comes on top (`spent`)
    checkpoint_interval: Positive = 60.0  # s
    milestone_interval: Count = 2_000_000  # samples; what is kept there, benchmarks.learning measures
    # folder that holds the runs; $REPERTOIRE_RUNS, or what skills_store/places.py has for them
    runs: str = Field(default_factory=lambda: str(places.runs()))
    store: str = ""  # "" is $REPERTOIRE_STORE, or what skills_store/places.py has for it
    publish: bool = True
    latent: LatentConfig = LatentConfig()
    ppo: PPOConfig = PPOConfig()
    disc: DiscConfig = DiscConfig()
    enc: EncConfig = EncConfig()
    warm: WarmConfig = WarmConfig()
    # full: the training aids beyond ASE; none: plain ASE, in which `curriculum`, `leash`, `imitation` and, of `latent` and
    # `recovery`, near_steps, near_after, lift_start, lift_rate and rise_reward_weight have no effect
    assist: Literal["full", "none"] = "full"
    curriculum: CurriculumConfig = CurriculumConfig()
    leash: LeashConfig = LeashConfig()
    imitation: ImitationConfig = ImitationConfig()
    recovery: RecoveryConfig = RecoveryConfig()
    refine: RefineConfig = RefineConfig()
    eval: EvalConfig = EvalConfig()

    @model_validator(mode="after")
    def _refined_only_with_aids(self) -> PretrainConfig:
        if self.refine.correct > 0 and not self.assisted:
            raise ValueError(f"refine.correct {self.refine.correct} needs assist=full; with assist=none it is to be 0")
        return self

    @property
    def assisted(self) -> bool:
        return self.assist == "full"

    def spent(self, samples: int) -> int:
        """Samples that a run has taken from the engine after `samples` of training: those, and what it was refined on."""
        turn, refining = self.num_envs * self.ppo.horizon, self.refine.correct + self.refine.learn
        times = sum(samples >= after for after in {*self.refine.after, self.samples}) if self.refine.correct else 0
        return samples + times * math.ceil(refining / turn) * turn
