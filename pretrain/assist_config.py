"""Groups of the configuration that are training aids beyond ASE (pretrain/assist/)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pretrain.rl.field_types import Frozen, NotNegative, Positive, Share


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
        default=0.0125, description="Share by which an assist force weakens per iteration"
    )
    min_foot_match: Share | None = Field(
        default=None,
        description=(
            "How well the feet are lifted when the clip's are, below which its assist does not "
            "weaken: 1 in playback, 0 for a body that stands through the steps. null: the feet do "
            "not count"
        ),
    )
    focus: Annotated[float, Field(ge=1)] = Field(
        default=3.0,
        description="Largest factor on a clip's weight in starting episodes, up or down",
    )


class SwitchConfig(Frozen):
    """What helps after a change to the latent of a clip of another velocity
    (pretrain/assist/switch_assist.py, reference_blend.py)."""

    assist_start: Share = Field(
        default=0.0,
        description=(
            "First strength of the assist force in the grace period after the change; for clips "
            "that are upright throughout. 0: none"
        ),
    )
    cloning_weight: NotNegative = Field(
        default=0.0,
        description=(
            "Weight of the cloning loss towards the reference action, times that assist's strength"
        ),
    )
    blend_time: NotNegative = Field(
        default=0.0,
        description="s in which a reference goes over to that of another clip. 0: at once",
    )


class TrackingTerminationConfig(Frozen):
    """Early termination by the tracking error, and the reward for coming nearer
    (pretrain/assist/tracking_termination.py)."""

    max_error: Positive = Field(
        default=1.3,
        description=(
            "Tracking error at which an episode ends: root mean square over window features, "
            "in units of their spread over the clips"
        ),
    )
    phase_locking: bool = Field(
        default=False,
        description=(
            "The error of a clip whose assistance is gone is measured at the reference phase, in "
            "units of the clip's own spread, instead of to the nearest window"
        ),
    )
    grace_period: NotNegative = Field(
        default=2.0, description="s after a change of latent in which the error may be larger"
    )
    max_velocity_excess: Positive | None = Field(
        default=None,
        description=(
            "Margins (about 0.3 m/s, 0.4 rad/s) by which the velocity, averaged over a second, may "
            "lie outside the clip's range before an episode ends, in phase-locked clips. null: "
            "unbounded"
        ),
    )
    nearer_reward_weight: NotNegative = Field(
        default=5.0, description="Weight per step of coming nearer to the clip's mean window"
    )

    @model_validator(mode="after")
    def _check_velocity_bound(self) -> TrackingTerminationConfig:
        if self.max_velocity_excess is not None and not self.phase_locking:
            raise ValueError(
                "max_velocity_excess bounds phase-locked clips, and phase_locking is false; "
                "expected phase_locking=true"
            )
        return self


class ImitationConfig(Frozen):
    """Tracking reward and pose gradient (pretrain/assist/imitation.py)."""

    reward_weight: NotNegative = Field(default=0.0, description="Weight of the tracking reward")
    reward_scale: Positive = Field(
        default=0.5,
        description="Scale of the tracking error in that reward and in the pose gradient",
    )
    velocity_weight: NotNegative = Field(
        default=0.0,
        description=(
            "The tracking reward falls by exp(-velocity_weight * margins outside the clip's "
            "velocities)"
        ),
    )
    foot_weight: NotNegative = Field(
        default=0.0,
        description="Weight of the reward for feet that are lifted when those of the clip are",
    )
    pose_gradient_weight: NotNegative = Field(
        default=0.0,
        description=(
            "Weight of the pose gradient, which moves joints to the reference pose once a clip's "
            "assistance is gone"
        ),
    )


class RecoveryConfig(Frozen):
    """Getting up, with clips that rise from lying (pretrain/sim/falls.py)."""

    episode_prob: Share = Field(
        default=0.05, description="Share of episodes that a fall does not end at once"
    )
    fall_init_prob: Share = Field(default=0.05, description="Share of episodes that begin lying")
    getup_reward_weight: NotNegative = Field(default=1.0, description="Weight of the get-up reward")
