"""Groups of the configuration that are ASE's: latents, policy, discriminator, encoder and the warm
start."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from pretrain.rl.field_types import Count, Frozen, NotNegative, Positive, Seconds, Share
from pretrain.rl.ppo_config import PPOConfig
from pretrain.rl.returns import Critics
from skills_store.reference import parse

# Units of hidden layers, whose halves are swapped by a reflection (pretrain/rl/mirror_net.py).
MirrorLayers = Annotated[
    tuple[Annotated[int, Field(gt=0, multiple_of=2)], ...], Field(min_length=1)
]


class LatentConfig(Frozen):
    """How latents are drawn, and for how long (pretrain/ase/latents.py)."""

    latent_dim: Annotated[int, Field(ge=2)] = Field(
        default=8, description="Dimension of z, a point on the unit sphere"
    )
    latent_time_min: NotNegative = Field(
        default=0.0, description="s; shortest time between two latents of a world"
    )
    latent_time_max: Seconds = Field(
        default=5.0, description="s; longest time between two latents of a world"
    )
    clip_latent_prob: Share = Field(
        default=0.5,
        description=(
            "Share of latents that are a clip's own: at the start of an episode that of the clip "
            "it starts in, later that of a random clip"
        ),
    )
    near_prob: Share = Field(
        default=1.0,
        description=(
            "Of an episode's first latents that are no clip's own, the share drawn from the "
            "directions nearer to the latent of the clip it starts in than to any other clip's; "
            "three quarters of it once the clip's assistance is gone and its episodes last 200 "
            "steps. All other latents are uniform on the sphere"
        ),
    )
    own_return: bool = Field(
        default=True,
        description=(
            "The return of a latent ends with it; otherwise, as in ASE, it continues under the next"
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


class SkillPPOConfig(PPOConfig):
    """The policy, its value net, and how they learn from a rollout (pretrain/rl/ppo.py)."""

    hidden: MirrorLayers = Field(default=(256, 256), description="Units of the hidden layers")
    value_hidden: MirrorLayers = Field(
        default=(256, 128), description="Units of the value net's hidden layers"
    )
    critics: Critics = Field(
        default="joint",
        description=(
            "joint: the value net predicts the sum of the rewards. separate: it has an output for "
            "each reward. normalized: the same, and each reward is divided by the standard "
            "deviation of its returns before it is weighted"
        ),
    )
    action_std: Positive = Field(
        default=0.1, description="First standard deviation of actions, in units of the action scale"
    )
    action_std_final: Positive = Field(
        default=0.03,
        description=(
            "Standard deviation once all clips are mastered without assistance; with assist=none "
            "it stays at action_std"
        ),
    )
    average_decay: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.99, description="Decay per iteration of the averaged weights that are published"
    )
    smoothing_weight: NotNegative = Field(
        default=1.0,
        description=(
            "Weight of the squared distance of each mean action to the average of those one step "
            "before and after it"
        ),
    )


class DiscConfig(Frozen):
    """The style prior: its net, loss and reward (pretrain/ase/discriminator.py)."""

    hidden: MirrorLayers = Field(default=(256, 128), description="Units of the hidden layers")
    lr: Positive = Field(default=1e-4, description="Learning rate of the discriminator")
    rows: Count = Field(default=2048, description="Windows of each rollout that are used")
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
        default=128, description="Windows of each iteration that go into the replay buffer"
    )
    replay_share: NotNegative = Field(
        default=0.5, description="Replayed windows per fresh one; 1 in MimicKit"
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
    """The encoder, its loss and reward, and the diversity of skills (pretrain/ase/encoder.py)."""

    hidden: MirrorLayers = Field(default=(128, 128), description="Units of the hidden layers")
    lr: Positive = Field(default=2e-4, description="Learning rate of the encoder")
    rows: Count = Field(default=1024, description="Windows of each rollout that are used")
    minibatch: Count = Field(default=1024, description="Rows of a minibatch")
    enc_reward_weight: NotNegative = Field(default=0.5, description="Weight of the skill reward")
    enc_reward_min: Annotated[float, Field(ge=-1, le=0)] = Field(
        default=-1.0, description="Lower bound of the skill reward; 0 in ASE"
    )
    enc_loss_weight: Positive = Field(default=1.0, description="Weight of the whole loss")
    anchor_weight: NotNegative = Field(
        default=1.0, description="Weight of keeping each clip at its latent; 0 in ASE"
    )
    uniformity_weight: NotNegative = Field(
        default=0.0,
        description=(
            "Weight of spreading embeddings over the sphere; 0 in ASE. Memory grows with the "
            "square of the minibatch"
        ),
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
    """Before any simulation: the encoder learns to separate the clips, the policy to clone them.
    Or both are a published library's (pretrain/ase/published_weights.py)."""

    library: str = Field(
        default="",
        description=(
            "Published library, as NAME@N, from whose policy and encoder training goes on: its "
            "clips, known by files and edits, keep their z and begin unassisted, others are cloned "
            "and assisted. Empty: none"
        ),
    )
    value_samples: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description=(
            "Samples at the start in which the policy is held while value net and discriminator "
            "learn"
        ),
    )
    parent_weight: NotNegative = Field(
        default=0.0,
        description=(
            "Weight of the squared distance of mean actions to those of `library`, near its clips "
            "(pretrain/ase/parent_skills.py)"
        ),
    )
    encoder_steps: Annotated[int, Field(ge=0)] = Field(
        default=500, description="Gradient steps of the encoder before simulation"
    )
    clone_steps: Annotated[int, Field(ge=0)] = Field(
        default=1500, description="Gradient steps of the policy before simulation"
    )
    distill_steps: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description=(
            "Gradient steps in which the policy of `library` learns to depend on its latent, "
            "before simulation (pretrain/assist/latent_distillation.py)"
        ),
    )

    @field_validator("library")
    @classmethod
    def _check_pinned(cls, library: str) -> str:
        if library and not parse(library).is_pinned:
            raise ValueError(f"{library!r} may name another version tomorrow; expected NAME@N")
        return library
