"""Configuration of pretraining: Hydra's groups as one frozen model. An unknown key is an error.

Names are the field's (MimicKit's where it has the notion).
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pretrain.rl.setting import Count, Frozen, NotNegative, Positive, Rate, Seconds, Seed, Share
from skills_store import places
from skills_store.manifest import Name

Even = Annotated[int, Field(gt=0, multiple_of=2)]  # hidden units, whose halves a reflection swaps
Layers = Annotated[tuple[Even, ...], Field(min_length=1)]


class LatentConfig(Frozen):
    """How latents are drawn, and for how long (pretrain/ase/latents.py)."""

    latent_dim: Annotated[int, Field(ge=2)] = Field(
        default=64, description="Dimension of z, a point on the unit sphere"
    )
    latent_time_min: NotNegative = Field(
        default=0.0, description="s; shortest time between two latents of a world"
    )
    latent_time_max: Seconds = Field(
        default=5.0, description="s; longest time between two latents of a world"
    )
    clip_latent_prob: Share = Field(
        default=0.5,
        description="Share of latents that are a clip's own; the rest are uniform on the sphere",
    )
    near_prob: Share = Field(
        default=0.0,
        description=(
            "Share of an episode's first latents, of those that are no clip's own, drawn "
            "around the latent of the clip it starts in"
        ),
    )
    near_steps: Positive | None = Field(
        default=None,
        description=(
            "Control steps; near_prob holds while a clip is assisted or its episodes are "
            "shorter than this. null: always"
        ),
    )
    near_after: Share = Field(default=0.0, description="Share of near_prob that remains after that")
    own_return: bool = Field(
        default=False,
        description=(
            "The return of a latent ends with it, as in ASE; otherwise it continues under the next"
        ),
    )

    @model_validator(mode="after")
    def _check_times(self) -> LatentConfig:
        if self.latent_time_min > self.latent_time_max:
            raise ValueError(
                f"latent_time_min {self.latent_time_min} is over "
                f"latent_time_max {self.latent_time_max}"
            )
        return self


class PPOConfig(Frozen):
    """The policy, its value net, and how they learn from a rollout (pretrain/rl/ppo.py)."""

    horizon: Count = Field(default=8, description="Control steps of each world per iteration")
    gamma: Share = Field(default=0.97, description="Discount per control step")
    lam: Share = Field(default=0.95, description="Lambda of GAE")
    clip: Positive = Field(default=0.2, description="PPO's epsilon, of the probability ratio")
    lr: Rate = Field(
        default=5e-5, description="First learning rate of the policy, adapted towards target_kl"
    )
    target_kl: Positive | None = Field(
        default=0.04,
        description="nats; mean over the minibatches of one fit. null: constant learning rate",
    )
    epochs: Count = Field(default=2, description="Passes over a rollout")
    minibatch: Count = Field(default=1024, description="Rows of a minibatch")
    value_lr: Positive = Field(default=5e-4, description="Learning rate of the value net")
    value_epochs: Count = Field(default=2, description="Passes of the value net over a rollout")
    value_minibatch: Count = Field(default=1024, description="Rows of a minibatch of the value net")
    hidden: Layers = Field(default=(256, 256), description="Units of the hidden layers")
    value_hidden: Layers = Field(
        default=(256, 256), description="Units of the value net's hidden layers"
    )
    action_std: Positive = Field(
        default=0.1, description="First standard deviation of actions, in units of the action scale"
    )
    action_std_final: Positive = Field(
        default=0.05,
        description=(
            "Standard deviation once all clips are mastered without assistance; with assist=none "
            "it stays at action_std"
        ),
    )
    average_decay: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.99, description="Decay per iteration of the averaged weights that are published"
    )
    noise_color: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.5, description="Correlation of exploration noise from one step to the next"
    )
    action_bound: Positive = Field(
        default=2.0, description="In units of the action scale; means beyond it are penalized"
    )
    action_bound_weight: NotNegative = Field(default=1.0, description="Weight of that penalty")


class DiscConfig(Frozen):
    """The style prior: its net, loss and reward (pretrain/ase/style.py)."""

    hidden: Layers = Field(default=(256, 256), description="Units of the hidden layers")
    lr: Positive = Field(default=1e-4, description="Learning rate of the discriminator")
    rows: Count = Field(default=4096, description="Windows of each rollout that are used")
    minibatch: Count = Field(default=1024, description="Rows of a minibatch")
    disc_reward_weight: NotNegative = Field(default=0.5, description="Weight of the style reward")
    disc_reward_scale: Positive = Field(default=2.0, description="Factor of -log(1 - D)")
    disc_grad_penalty: NotNegative = Field(
        default=3.0,
        description="Weight of the gradient penalty; at 10, standing is rewarded like walking",
    )
    disc_logit_reg: NotNegative = Field(
        default=0.01, description="Weight of the last layer's squared weights"
    )
    disc_buffer_size: Count = Field(default=100_000, description="Windows in the replay buffer")
    disc_replay_samples: Count = Field(
        default=2048, description="Replayed windows per iteration, beside `rows` fresh ones"
    )
    disc_loss_weight: Positive = Field(default=1.0, description="Weight of the whole loss")
    disc_weight_decay: NotNegative = Field(
        default=0.0, description="Weight of the squared weights of all layers"
    )
    conditional: bool = Field(
        default=True,
        description="Compare windows with those of the latent's clip; false: of all clips, as AMP",
    )


class EncConfig(Frozen):
    """The encoder, its loss and reward, and the diversity of skills (pretrain/ase/skill.py)."""

    hidden: Layers = Field(default=(256, 256), description="Units of the hidden layers")
    lr: Positive = Field(default=2e-4, description="Learning rate of the encoder")
    rows: Count = Field(default=4096, description="Windows of each rollout that are used")
    minibatch: Count = Field(default=1024, description="Rows of a minibatch")
    enc_reward_weight: NotNegative = Field(default=0.5, description="Weight of the skill reward")
    enc_reward_min: Annotated[float, Field(ge=-1, le=0)] = Field(
        default=-1.0, description="Lower bound of the skill reward; 0 in ASE"
    )
    enc_loss_weight: Positive = Field(default=1.0, description="Weight of the whole loss")
    anchor_weight: NotNegative = Field(
        default=1.0, description="Weight of keeping each clip at its latent; 0 in ASE"
    )
    diversity_weight: NotNegative = Field(default=0.01, description="Weight of the diversity loss")
    diversity_tar: Positive = Field(
        default=1.0,
        description=(
            "Target of mean squared difference of actions / 0.5 (1 - cosine of their latents)"
        ),
    )
    diversity_share: Share = Field(
        default=0.125, description="Share of rows in the diversity loss; 1 in ASE"
    )


class WarmConfig(Frozen):
    """Before any simulation: the encoder learns to separate the clips, the policy to clone them."""

    encoder_steps: Annotated[int, Field(ge=0)] = Field(
        default=500, description="Gradient steps of the encoder before simulation"
    )
    clone_steps: Annotated[int, Field(ge=0)] = Field(
        default=1500, description="Gradient steps of the policy before simulation"
    )
    batch: Count = Field(default=1024, description="Rows of a batch")
    lr: Positive = Field(default=1e-3, description="Learning rate of both")


class CurriculumConfig(Frozen):
    """Assistance forces that decay, and where episodes begin (pretrain/assist/curriculum.py,
    forces.py)."""

    assist_start: Share = Field(
        default=0.7, description="First strength of the assist force, 0 to 1"
    )
    assist_steps: Positive = Field(
        default=60.0,
        description="Control steps; the assist of a clip weakens while its episodes last longer",
    )
    assist_rate: Share = Field(
        default=0.0125, description="Share by which it weakens per iteration"
    )
    steady_above: Share = Field(
        default=0.5,
        description=(
            "Clips whose root's up axis stays above this and whose speed is steady get an "
            "upright torque; others are pulled to the reference pose"
        ),
    )
    focus: Annotated[float, Field(ge=1)] = Field(
        default=3.0,
        description="Largest factor on a clip's weight in starting episodes, up or down",
    )


class TrackingTerminationConfig(Frozen):
    """Early termination by the tracking error, and the reward for its decrease
    (pretrain/assist/tracking_termination.py)."""

    max_error: Positive = Field(
        default=1.3,
        description=(
            "Tracking error at which an episode ends: root mean square over window features, "
            "in units of their spread over the clips"
        ),
    )
    phase_locking: Literal["never", "unassisted", "always"] = Field(
        default="never",
        description=(
            "Clips whose error is measured at the reference phase, in units of the clip's own "
            "spread, instead of to the nearest window; unassisted: those whose assistance is gone"
        ),
    )
    max_clip_spread: Positive | None = Field(
        default=None, description="Upper bound of a clip's own spread in that measure. null: none"
    )
    grace_period: NotNegative = Field(
        default=2.0, description="s after a change of latent in which the error may be larger"
    )
    recovery_window: NotNegative = Field(
        default=0.5,
        description=(
            "s for which the error may be larger at other times, when measured at the phase"
        ),
    )
    max_velocity_excess: Positive | None = Field(
        default=None,
        description=(
            "Margins (about 0.3 m/s, 0.4 rad/s) by which the velocity, averaged over a second, may "
            "lie outside the clip's range before an episode ends. null: unbounded"
        ),
    )
    nearer_reward_weight: NotNegative = Field(
        default=5.0, description="Weight of the decrease of the tracking error per step"
    )


class ImitationConfig(Frozen):
    """Tracking reward, cloning loss and pose gradient (pretrain/assist/imitation.py)."""

    reward_weight: NotNegative = Field(default=0.0, description="Weight of the tracking reward")
    reward_scale: Positive = Field(
        default=0.5, description="Scale of the tracking error in that reward, in the clips' spread"
    )
    velocity_weight: NotNegative = Field(
        default=0.0,
        description=(
            "The tracking reward falls by exp(-velocity_weight * margins outside the clip's "
            "velocities)"
        ),
    )
    cloning_weight: NotNegative = Field(
        default=0.0,
        description="Weight of the cloning loss towards the reference action, while assisted",
    )
    pose_gradient_weight: NotNegative = Field(
        default=0.0,
        description="Weight of the pose gradient, which moves joints to the reference pose",
    )
    pose_gradient_assisted: bool = Field(
        default=True, description="The pose gradient is also applied while a clip is assisted"
    )


class RecoveryConfig(Frozen):
    """Getting up, with clips that rise from lying (pretrain/sim/falls.py)."""

    patience: Positive = Field(
        default=4.0, description="s that a fallen character has to get up; the clips take 3 and 3.8"
    )
    protected_prob: Share = Field(
        default=0.05, description="Share of episodes that a fall does not end at once"
    )
    lying_prob: Share = Field(default=0.05, description="Share of episodes that begin lying")
    getup_start: Share = Field(default=0.5, description="First strength of the get-up assist")
    getup_rate: Share = Field(default=0.0125, description="Share by which it weakens per iteration")
    getup_reward_weight: NotNegative = Field(default=1.0, description="Weight of the get-up reward")


class RefineConfig(Frozen):
    """Iterative learning control on the phase of the clips (pretrain/assist/refinement.py)."""

    correct: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Samples in which the corrections are found. 0: no refinement"
    )
    learn: Count = Field(default=1_000_000, description="Samples in which the policy learns them")
    after: tuple[Count, ...] = Field(
        default=(), description="Samples of training after which refinement runs, besides the end"
    )

    @model_validator(mode="after")
    def _check_order(self) -> RefineConfig:
        if list(self.after) != sorted({*self.after}):
            raise ValueError(f"after {list(self.after)} does not rise")
        return self


class EvalConfig(Frozen):
    """The skill card that is published with the library (pretrain/evaluate.py)."""

    episodes: Annotated[int, Field(ge=2)] = Field(
        default=1024, description="Episodes of the skill card"
    )
    seed: Seed = Field(default=1234, description="Seed of all random draws")


class PretrainConfig(Frozen):
    """A training run. One iteration is a rollout of `num_envs` worlds over `ppo.horizon` control
    steps, and the fits on it."""

    name: Name = Field(default="humanoid", description="Name of the published library")
    character: str = Field(
        default="humanoid", description="Name in pretrain/characters/character.py"
    )
    motions: str = Field(default="locomotion", description="A bundled recipe, or the path of one")
    engine: str = Field(default="mujoco", description="Name in pretrain/sim/backend.py")
    threads: Annotated[int, Field(ge=0)] = Field(
        default=0, description="0: all that the process may use"
    )
    seed: Seed = Field(default=0, description="Seed of all random draws")
    num_envs: Count = Field(default=1024, description="Worlds simulated at once")
    episode_length: Seconds = Field(default=10.0, description="s")
    default_reset_prob: Share = Field(
        default=0.0, description="Share of episodes that begin in the default pose"
    )
    symmetry: bool = Field(
        default=True, description="Networks commute with the reflection of body and clips"
    )
    num_disc_obs_steps: Annotated[int, Field(ge=2)] = Field(
        default=3, description="Frames of a style window, a control step apart"
    )
    samples: Count = Field(
        default=16_000_000,
        description="Control steps summed over the worlds; refinement comes on top",
    )
    checkpoint_interval: Positive = Field(default=60.0, description="s between checkpoints")
    milestone_interval: Count = Field(
        default=2_000_000,
        description="Samples between the milestones that are kept for benchmarks.learning",
    )
    runs: str = Field(
        default_factory=lambda: str(places.runs()),
        description=(
            "Folder of training runs; default $REPERTOIRE_RUNS, else as in skills_store/places.py"
        ),
    )
    store: str = Field(
        default="",
        description="Skill store; default $REPERTOIRE_STORE, else as in skills_store/places.py",
    )
    publish: bool = Field(default=True, description="Publish to the store at the end")
    start_frames: Annotated[int, Field(ge=0)] = Field(
        default=3000,
        description="Most frames of clips that are published as start states; 0: none",
    )
    latent: LatentConfig = LatentConfig()
    ppo: PPOConfig = PPOConfig()
    disc: DiscConfig = DiscConfig()
    enc: EncConfig = EncConfig()
    warm: WarmConfig = WarmConfig()
    assist: Literal["full", "none"] = Field(
        default="full",
        description=(
            "full: the training aids beyond ASE. none: without them; then curriculum, "
            "tracking_termination, imitation, near_steps, near_after, getup_start, getup_rate and "
            "getup_reward_weight have no effect"
        ),
    )
    curriculum: CurriculumConfig = CurriculumConfig()
    tracking_termination: TrackingTerminationConfig = TrackingTerminationConfig()
    imitation: ImitationConfig = ImitationConfig()
    recovery: RecoveryConfig = RecoveryConfig()
    refine: RefineConfig = RefineConfig()
    eval: EvalConfig = EvalConfig()

    @model_validator(mode="after")
    def _check_aids(self) -> PretrainConfig:
        if self.refine.correct > 0 and not self.assisted:
            raise ValueError(
                f"refine.correct {self.refine.correct} needs assist=full; "
                "with assist=none it must be 0"
            )
        return self

    @property
    def assisted(self) -> bool:
        return self.assist == "full"

    def count_samples(self, samples: int) -> int:
        """Samples that a run has simulated after `samples` of training, those of refinement
        included."""
        if not self.refine.correct:
            return samples
        each = self.num_envs * self.ppo.horizon  # samples of an iteration
        refining = math.ceil((self.refine.correct + self.refine.learn) / each) * each
        times = sum(samples >= after for after in {*self.refine.after, self.samples})
        return samples + times * refining
