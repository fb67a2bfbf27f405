"""Groups of the configuration that are training aids beyond ASE (pretrain/assist/)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pretrain.rl.field_types import Frozen, NotNegative, Positive, Share


class CurriculumConfig(Frozen):
    """Assist forces, which decay as clips are learned (forces.py) and as changes between them are
    (switch_assist.py), and where episodes begin (pretrain/assist/curriculum.py)."""

    assist_start: Share = Field(
        default=0.7,
        description=(
            "First strength of the assist force, 0 to 1. At 0 all clips are phase-locked from the "
            "beginning"
        ),
    )
    switch_assist_start: Share = Field(
        default=0.0,
        description=(
            "First strength of the assist force after a change to the latent of a clip of another "
            "velocity, for clips that are upright throughout; with a cloning loss, and references "
            "that are blended. 0: none of these"
        ),
    )
    focus: Annotated[float, Field(ge=1)] = Field(
        default=3.0,
        description="Largest factor on a clip's weight in starting episodes, up or down",
    )


class TrackingTerminationConfig(Frozen):
    """Early termination by the tracking error (pretrain/assist/tracking_termination.py)."""

    max_error: Positive = Field(
        default=5.0,
        description=(
            "Tracking error at which an episode ends: root mean square over window features, in "
            "units of that of a body 2 cm and 0.05 rad off. Larger in clips of large std. Also "
            "the unit of the error in the imitation reward and in the pose gradient"
        ),
    )
    max_velocity_excess: Positive | None = Field(
        default=2.5,
        description=(
            "Margins (about 0.3 m/s, 0.4 rad/s) by which the velocity, averaged over a second, may "
            "lie outside the clip's range before an episode ends, in phase-locked clips. null: "
            "unbounded"
        ),
    )


class ImitationConfig(Frozen):
    """Tracking reward and pose gradient (pretrain/assist/imitation.py)."""

    reward_weight: NotNegative = Field(default=6.0, description="Weight of the imitation reward")
    foot_weight: NotNegative = Field(
        default=3.0,
        description=(
            "Weight of the reward for feet that are lifted when those of the clip are; over 0, a "
            "clip's assist force weakens only if they are"
        ),
    )
    nearer_weight: NotNegative = Field(
        default=5.0,
        description=(
            "Weight of the reward for coming nearer, from one step to the next, to the mean of the "
            "clip's windows"
        ),
    )
    pose_gradient_weight: NotNegative = Field(
        default=8.0,
        description=(
            "Weight of the pose gradient, which moves joints to the reference pose once a clip's "
            "assistance is gone"
        ),
    )


class RecoveryConfig(Frozen):
    """Getting up, with clips that rise from lying (pretrain/sim/falls.py)."""

    fall_init_prob: Share = Field(default=0.05, description="Share of episodes that begin lying")
    getup_reward_weight: NotNegative = Field(
        default=3.0,
        description="Weight of the get-up reward; at 1, half of those that lie face up stay down",
    )
