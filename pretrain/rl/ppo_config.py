"""The group `ppo` of the configuration: a policy, its value net, and how they learn from a
rollout."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pretrain.rl.field_types import Count, Frozen, Layers, NotNegative, Positive, Rate, Share


class PPOConfig(Frozen):
    """A policy, its value net, and how they learn from a rollout (pretrain/rl/ppo.py)."""

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
    # With a bound on the change of the policy one epoch suffices. The value net needs more gradient
    # steps, but each row only once.
    epochs: Count = Field(default=1, description="Passes over a rollout")
    minibatch: Count = Field(default=2048, description="Rows of a minibatch")
    value_lr: Positive = Field(default=1e-3, description="Learning rate of the value net")
    value_epochs: Count = Field(default=1, description="Passes of the value net over a rollout")
    value_minibatch: Count = Field(default=512, description="Rows of a minibatch of the value net")
    hidden: Layers = Field(default=(256, 256), description="Units of the hidden layers")
    value_hidden: Layers = Field(
        default=(256, 128), description="Units of the value net's hidden layers"
    )
    action_std: Positive = Field(
        default=0.1, description="Standard deviation of actions, in units of the action scale"
    )
    noise_color: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.5,
        description=(
            "Correlation of exploration noise from one control step to the next, AR(1); 0 is "
            "white. Not a spectral exponent"
        ),
    )
    action_bound: Positive = Field(
        default=2.0,
        description=(
            "In units of the action scale; the squared distance of mean actions beyond +- this is "
            "penalized"
        ),
    )
    action_bound_weight: NotNegative = Field(
        default=1.0, description="Weight of that penalty in the policy's loss"
    )
