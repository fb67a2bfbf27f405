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
from pretrain.config import PretrainConfig
from pretrain.motion.clip import CONTROL_RATE
from pretrain.sim.falls import NO_RECOVERY, SECONDS_TO_RISE, Recovery
from pretrain.sim.ground import Ground
from pretrain.training_data import TrainingData, control_steps


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
    termination = cfg.tracking_termination
    limits = TrackingLimits(
        max_error=termination.max_error,
        grace_period=control_steps(termination.grace_period),
        max_velocity_excess=termination.max_velocity_excess,
        phase_locking=termination.phase_locking,
    )
    return AssistedEnv(
        ase_env,
        Assistance(curriculum, make_getup_assist(cfg, ground), make_switch_assist(cfg, ground)),
        TrackingTermination(windows, nets.discriminator.spread, limits, curriculum, cfg.num_envs),
        tracks=tracks_reference(cfg, ground),
        feet=FootSwing(skeleton, ase_env.env.starts) if compares_feet(cfg) else None,
        blend_steps=control_steps(cfg.switch.blend_time),
    )


def compares_feet(cfg: PretrainConfig) -> bool:
    """Whether a reward or the assistance depends on how the feet are lifted."""
    return cfg.imitation.foot_weight > 0 or cfg.curriculum.min_foot_match is not None


def tracks_reference(cfg: PretrainConfig, ground: Ground) -> bool:
    """Whether anything uses the reference motions: the termination, a reward, or an assistance
    that pulls towards them, as in clips that are not steady."""
    imitation = cfg.imitation
    weights = (imitation.reward_weight, imitation.pose_gradient_weight)
    uses = (
        cfg.tracking_termination.phase_locking
        or compares_feet(cfg)
        or cfg.switch.assist_start > 0
        or any(weight > 0 for weight in weights)
    )
    return cfg.assisted and (uses or not bool(ground.steady.all()))


def make_curriculum(cfg: PretrainConfig, data: TrainingData, ground: Ground) -> Curriculum:
    """For clips that do not rise; the others have `make_getup_assist`."""
    curriculum = cfg.curriculum
    return Curriculum(
        data.library.weights,
        episode_length=control_steps(cfg.episode_length),
        schedule=AssistSchedule(
            curriculum.assist_start,
            curriculum.assist_steps,
            curriculum.assist_rate,
            curriculum.min_foot_match,
        ),
        focus=curriculum.focus,
        # steps on the ground are no success, so clips that rise would always get more episodes
        included=~ground.rising,
        near=NearLatents(cfg.latent.near_prob),
    )


def make_getup_assist(cfg: PretrainConfig, ground: Ground) -> GetUpAssist:
    """Of strength 0 in clips that do not rise."""
    return GetUpAssist(GETUP_START * ground.rising, cfg.curriculum.assist_rate)


def make_switch_assist(cfg: PretrainConfig, ground: Ground) -> SwitchAssist:
    """For clips that are upright throughout; a switch takes the grace period of its termination."""
    strength = cfg.switch.assist_start * ground.upright
    period = control_steps(cfg.tracking_termination.grace_period)
    return SwitchAssist(strength, cfg.curriculum.assist_rate, cfg.num_envs, period)


def make_recovery(cfg: PretrainConfig, ground: Ground) -> Recovery:
    """No episode is protected where no clip rises from lying."""
    recovery = cfg.recovery
    if not ground.rising.any():
        return NO_RECOVERY
    steps = control_steps(SECONDS_TO_RISE)
    return Recovery(steps, recovery.episode_prob, recovery.fall_init_prob)
