"""The training aids of a configuration: curriculum, assistance, termination, and recovery after
falls."""

from __future__ import annotations

from pretrain.ase.env import AseEnv
from pretrain.ase.nets import SkillNets
from pretrain.ase.reference_windows import make_reference_windows
from pretrain.assist.assistance import Assistance
from pretrain.assist.assisted_env import AssistedEnv
from pretrain.assist.curriculum import AssistSchedule, Curriculum, NearLatents
from pretrain.assist.foot_swing import FootSwing
from pretrain.assist.getup import GETUP_START, GetUpAssist
from pretrain.assist.switch_assist import SwitchAssist
from pretrain.assist.tracking_termination import TrackingLimits, TrackingTermination
from pretrain.characters.state import unflatten
from pretrain.config import PretrainConfig
from pretrain.motion.clip import CONTROL_RATE, control_steps
from pretrain.sim.falls import NO_RECOVERY, SECONDS_TO_RISE, Recovery
from pretrain.sim.ground import Ground
from pretrain.sim.small_error import small_error
from pretrain.training_data import TrainingData

GRACE_PERIOD = 2.0  # s after a change of latent in which the tracking error may be larger
BLEND_TIME = 1.0  # s in which a reference goes over to that of another clip, with switch assistance
# How well the feet must be lifted when the clip's are for its assist force to weaken: 1 in
# playback, 0 for a body that stands through the steps.
MIN_FOOT_MATCH = 0.3


def make_assisted_env(
    cfg: PretrainConfig,
    data: TrainingData,
    nets: SkillNets,
    ase_env: AseEnv,
    curriculum: Curriculum,
) -> AssistedEnv:
    """`ase_env` with the training aids of `cfg`."""
    ground = ase_env.env.falls.ground
    skeleton = data.character.skeleton
    windows = make_reference_windows(
        data.library, skeleton, cfg.num_disc_obs_steps, rate=CONTROL_RATE
    )
    scale = nets.discriminator.std
    states = unflatten(data.library.frames)
    # a unit that depends less on the other clips than their std
    unit = small_error(skeleton, states, scale, cfg.num_disc_obs_steps) / len(scale) ** 0.5
    termination = cfg.tracking_termination
    limits = TrackingLimits(
        max_error=termination.max_error * unit,
        grace_period=control_steps(GRACE_PERIOD),
        max_velocity_excess=termination.max_velocity_excess,
    )
    return AssistedEnv(
        ase_env,
        Assistance(curriculum, make_getup_assist(ground), make_switch_assist(cfg, ground)),
        TrackingTermination(windows, scale, limits, curriculum, cfg.num_envs),
        feet=FootSwing(skeleton, ase_env.env.starts) if compares_feet(cfg) else None,
        blend_steps=control_steps(BLEND_TIME) if cfg.curriculum.switch_assist_start else 0,
    )


def compares_feet(cfg: PretrainConfig) -> bool:
    """Whether a reward or the assistance depends on how the feet are lifted."""
    return cfg.imitation.foot_weight > 0


def make_curriculum(cfg: PretrainConfig, data: TrainingData, ground: Ground) -> Curriculum:
    """For clips that do not rise; the others have `make_getup_assist`."""
    return Curriculum(
        data.library.weights,
        episode_length=control_steps(cfg.episode_length),
        schedule=AssistSchedule(
            cfg.curriculum.assist_start,
            min_foot_match=MIN_FOOT_MATCH if compares_feet(cfg) else None,
        ),
        focus=cfg.curriculum.focus,
        # steps on the ground are no success, so clips that rise would always get more episodes
        included=~ground.rising,
        near=NearLatents(cfg.latent.near_prob),
    )


def make_getup_assist(ground: Ground) -> GetUpAssist:
    """Of strength 0 in clips that do not rise."""
    return GetUpAssist(GETUP_START * ground.rising)


def make_switch_assist(cfg: PretrainConfig, ground: Ground) -> SwitchAssist:
    """For clips that are upright throughout; a switch takes the grace period of its termination."""
    strength = cfg.curriculum.switch_assist_start * ground.upright
    return SwitchAssist(strength, cfg.num_envs, control_steps(GRACE_PERIOD))


def make_recovery(cfg: PretrainConfig, ground: Ground) -> Recovery:
    """Time to get up in clips that rise from lying, if there are any."""
    if not ground.rising.any():
        return NO_RECOVERY
    steps = control_steps(SECONDS_TO_RISE)
    return Recovery(steps, fall_init_prob=cfg.recovery.fall_init_prob)
