"""A configuration and clips to a training run: networks, environment, rewards and learners (Peng et
al. 2022), their warm start, and what follows the progress of the curriculum. The only module that
knows both the configuration and the rooms it configures."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from pretrain.ase.clone import CloneConfig, CloneData, clone
from pretrain.ase.latents import LatentSchedule, SkillEnv
from pretrain.ase.nets import Sizes, SkillNets, make_nets
from pretrain.ase.skill import encoder_loss, skill_reward, warm_encoder, with_diversity_loss
from pretrain.ase.style import (
    StyleLossWeights,
    make_reference_windows,
    make_replay,
    style_loss,
    style_reward,
)
from pretrain.ase.symmetry import make_symmetry
from pretrain.assist.aids import AssistedEnv, privileged_mirror
from pretrain.assist.curriculum import AssistSchedule, Curriculum, NearLatents
from pretrain.assist.getup import GetUpAssist
from pretrain.assist.getup_reward import getup_reward
from pretrain.assist.imitation import (
    FOR_CLONING,
    FOR_POSE_GRADIENT,
    imitation_reward,
    with_cloning_loss,
    with_pose_gradient,
)
from pretrain.assist.tracking_termination import TrackingLimits, TrackingTermination, nearer_reward
from pretrain.characters.skeleton import Skeleton
from pretrain.config import PPOConfig, PretrainConfig
from pretrain.motion.clip import CONTROL_RATE
from pretrain.rl.learner import Learner
from pretrain.rl.loop import LoopConfig, Objective, Reward
from pretrain.rl.ppo import FOR_POLICY, FOR_VALUE, Loss, clipped_surrogate, value_loss
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Noise
from pretrain.rl.training import Training
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.falls import NO_PROTECTION, Protection
from pretrain.sim.ground import Ground, read_ground
from pretrain.training_data import TrainingData, control_steps

SkillTraining = Training[SkillNets, SkillEnv | AssistedEnv]
WeightedRewards = dict[str, tuple[float, Reward]]


def build_training(cfg: PretrainConfig, data: TrainingData) -> SkillTraining:
    """Fresh networks, an environment and the ASE objective: style and skill rewards, four learners.
    The warm start is not part of it."""
    seeds = Generator().manual_seed(cfg.seed)
    streams = [Generator().manual_seed(int(s)) for s in torch.randint(2**62, (3,), generator=seeds)]
    rng, env_rng, skill_rng = streams
    skeleton = data.character.skeleton
    ground = read_ground(data.library, skeleton, cfg.curriculum.steady_above)
    nets = build_nets(cfg, data, ground, rng)
    curriculum = make_curriculum(cfg, data, ground) if cfg.assisted else None
    env = build_env(cfg, data, ground, curriculum, env_rng)
    skills = SkillEnv(
        env,
        nets.action_scale,
        make_latent_schedule(cfg),
        nets.encoder.clip_latents,
        rng=skill_rng,
        near_probs=make_near_probs(cfg, curriculum) if curriculum else None,
    )
    replay = make_replay(cfg.disc.disc_buffer_size, data.demos)
    training = Training(
        nets,
        make_assisted_env(cfg, data, nets, skills, curriculum) if curriculum else skills,
        make_objective(cfg, nets, data, replay, ground),
        LoopConfig(cfg.ppo.horizon, cfg.ppo.gamma, cfg.ppo.lam),
        Noise(cfg.ppo.noise_color, torch.zeros(cfg.num_envs, skeleton.num_hinges)),
        rng,
        memory={"replay": replay},
    )
    adapt(cfg, training)
    return training


def build_nets(
    cfg: PretrainConfig, data: TrainingData, ground: Ground, rng: Generator
) -> SkillNets:
    """Fresh networks; the value net has the privileged observation where references are tracked."""
    skeleton = data.character.skeleton
    privileged = privileged_mirror(skeleton) if tracks_reference(cfg, ground) else None
    latent_dim = cfg.latent.latent_dim
    sizes = Sizes(
        latent_dim,
        policy=cfg.ppo.hidden,
        value=cfg.ppo.value_hidden,
        disc=cfg.disc.hidden,
        enc=cfg.enc.hidden,
        action_std=cfg.ppo.action_std,
        average_decay=cfg.ppo.average_decay,
        privileged=len(privileged) if privileged else 0,
        conditional=cfg.disc.conditional,
    )
    steps = cfg.num_disc_obs_steps
    symmetry = make_symmetry(
        skeleton,
        data.library.images if cfg.symmetry else None,
        latent_dim,
        steps,
        privileged=privileged,
        conditional=cfg.disc.conditional,
    )
    return make_nets(
        sizes, data.library, data.demos, skeleton.num_hinges, symmetry=symmetry, rng=rng
    )


def build_env(
    cfg: PretrainConfig,
    data: TrainingData,
    ground: Ground,
    curriculum: Curriculum | None,
    rng: Generator,
) -> CharacterEnv:
    """The simulated characters; the curriculum, if there is one, has the weights of the clips in
    which episodes begin."""
    episodes = EpisodeConfig(
        window=cfg.num_disc_obs_steps,
        length=control_steps(cfg.episode_length),
        protection=make_protection(cfg, ground),
        clip_weights=(lambda: curriculum.weights) if curriculum else None,
        default_reset_prob=cfg.default_reset_prob,
    )
    return CharacterEnv(
        make_backend(cfg.engine, data.character, cfg.num_envs, cfg.threads),
        data.character.skeleton,
        data.library,
        episodes,
        rng=rng,
        ground=ground,
    )


def make_latent_schedule(cfg: PretrainConfig) -> LatentSchedule:
    latent = cfg.latent
    return LatentSchedule(
        latent.latent_dim,
        max(1, control_steps(latent.latent_time_min)),
        control_steps(latent.latent_time_max),
        latent.clip_latent_prob,
        latent.near_prob,
        latent.own_return,
    )


def make_near_probs(cfg: PretrainConfig, curriculum: Curriculum) -> Callable[[], Tensor]:
    latent = cfg.latent
    near = NearLatents(latent.near_prob, latent.near_steps or math.inf, latent.near_after)
    return lambda: curriculum.near_probs(near)


def make_assisted_env(
    cfg: PretrainConfig,
    data: TrainingData,
    nets: SkillNets,
    skills: SkillEnv,
    curriculum: Curriculum,
) -> AssistedEnv:
    """`skills` with the training aids of `cfg`."""
    ground = skills.env.falls.ground
    skeleton = data.character.skeleton
    windows = make_reference_windows(
        data.library, skeleton, cfg.num_disc_obs_steps, rate=CONTROL_RATE
    )
    termination = cfg.tracking_termination
    limits = TrackingLimits(
        termination.max_error,
        control_steps(termination.grace_period),
        control_steps(termination.recovery_window),
        termination.max_clip_spread,
        termination.max_velocity_excess,
        termination.phase_locking,
    )
    return AssistedEnv(
        skills,
        curriculum,
        make_getup_assist(cfg, ground),
        TrackingTermination(windows, nets.discriminator.spread, limits, cfg.num_envs),
        tracks=tracks_reference(cfg, ground),
    )


def tracks_reference(cfg: PretrainConfig, ground: Ground) -> bool:
    """Whether anything uses the reference motions: the termination, a reward, refinement, or an
    assistance that pulls towards them, as in clips that are not steady."""
    imitation = cfg.imitation
    weights = (
        imitation.reward_weight,
        imitation.cloning_weight,
        imitation.pose_gradient_weight,
    )
    phase_locks = cfg.tracking_termination.phase_locking != "never"
    uses = phase_locks or cfg.refine.correct > 0 or any(weight > 0 for weight in weights)
    return cfg.assisted and (uses or not bool(ground.steady.all()))


def make_curriculum(cfg: PretrainConfig, data: TrainingData, ground: Ground) -> Curriculum:
    """Clips that rise have an assistance of their own (`make_getup_assist`)."""
    curriculum = cfg.curriculum
    return Curriculum(
        data.library.weights,
        episode_length=control_steps(cfg.episode_length),
        schedule=AssistSchedule(
            curriculum.assist_start, curriculum.assist_steps, curriculum.assist_rate
        ),
        assisted=~ground.rising,
        focus=curriculum.focus,
        # steps on the ground are no success, so clips that rise would always get more episodes
        focused=~ground.rising,
    )


def make_getup_assist(cfg: PretrainConfig, ground: Ground) -> GetUpAssist:
    """Of strength 0 in clips that do not rise."""
    return GetUpAssist(cfg.recovery.getup_start * ground.rising, cfg.recovery.getup_rate)


def make_protection(cfg: PretrainConfig, ground: Ground) -> Protection:
    """No episode is protected where no clip rises from lying."""
    recovery = cfg.recovery
    if not ground.rising.any():
        return NO_PROTECTION
    patience = control_steps(recovery.patience)
    return Protection(patience, recovery.protected_prob, recovery.lying_prob)


def make_objective(
    cfg: PretrainConfig, nets: SkillNets, data: TrainingData, replay: Replay, ground: Ground
) -> Objective:
    """Peng et al. 2022: rewards for style and for identifiable skills, and a loss for diversity."""
    disc = cfg.disc
    enc = cfg.enc
    return Objective(
        rewards={
            "style": (
                disc.disc_reward_weight,
                style_reward(nets.discriminator, disc.disc_reward_scale),
            ),
            "skill": (enc.enc_reward_weight, skill_reward(nets.encoder, enc.enc_reward_min)),
            **(make_assist_rewards(cfg, ground) if cfg.assisted else {}),
        },
        policy=make_policy_learner(cfg, nets, data.character.skeleton),
        value=make_value_learner(cfg.ppo, nets),
        others=(
            make_disc_learner(cfg, nets, data, replay),
            make_enc_learner(cfg, nets, data),
        ),
    )


def make_policy_learner(cfg: PretrainConfig, nets: SkillNets, skeleton: Skeleton) -> Learner:
    ppo = cfg.ppo
    return Learner(
        "policy",
        (*nets.policy.inputs.names, *FOR_POLICY, *imitation_keys(cfg)),
        make_policy_loss(cfg, nets, skeleton),
        make_adam(nets.policy, ppo.lr),
        ppo.epochs,
        ppo.minibatch,
        target_kl=ppo.target_kl,
    )


def make_value_learner(ppo: PPOConfig, nets: SkillNets) -> Learner:
    return Learner(
        "value",
        (*nets.value.inputs.names, *FOR_VALUE),
        value_loss(nets.value),
        make_adam(nets.value, ppo.value_lr),
        ppo.value_epochs,
        ppo.value_minibatch,
    )


def make_disc_learner(
    cfg: PretrainConfig, nets: SkillNets, data: TrainingData, replay: Replay
) -> Learner:
    disc = cfg.disc
    weights = StyleLossWeights(
        loss=disc.disc_loss_weight,
        grad_penalty=disc.disc_grad_penalty,
        logit_reg=disc.disc_logit_reg,
        weight_decay=disc.disc_weight_decay,
    )
    replay_share = disc.disc_replay_samples / disc.rows
    loss = style_loss(nets.discriminator, data.demos, replay, weights, replay_share)
    optimizer = make_adam(nets.discriminator, disc.lr)
    return Learner("disc", ("window", "z_clip"), loss, optimizer, 1, disc.minibatch, disc.rows)


def make_enc_learner(cfg: PretrainConfig, nets: SkillNets, data: TrainingData) -> Learner:
    enc = cfg.enc
    loss = encoder_loss(
        nets.encoder, data.demos, weight=enc.enc_loss_weight, anchor_weight=enc.anchor_weight
    )
    optimizer = make_adam(nets.encoder, enc.lr)
    return Learner("enc", ("window", "z"), loss, optimizer, 1, enc.minibatch, enc.rows)


def make_adam(net: torch.nn.Module, lr: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(net.parameters(), lr, fused=True)


def make_assist_rewards(cfg: PretrainConfig, ground: Ground) -> WeightedRewards:
    """Reward terms of the training aids, name -> (weight, term)."""
    nearer_weight = cfg.tracking_termination.nearer_reward_weight
    rewards: WeightedRewards = {"nearer": (nearer_weight, nearer_reward)}
    if ground.rising.any():
        rewards["getup"] = (cfg.recovery.getup_reward_weight, getup_reward(ground))
    imitation = cfg.imitation
    if imitation.reward_weight:
        term = imitation_reward(imitation.reward_scale, imitation.velocity_weight)
        rewards["imitation"] = (imitation.reward_weight, term)
    return rewards


def imitation_keys(cfg: PretrainConfig) -> tuple[str, ...]:
    """The tensors of a batch that the policy's loss reads for imitation."""
    if not cfg.assisted:
        return ()
    cloning = FOR_CLONING if cfg.imitation.cloning_weight else ()
    poses = FOR_POSE_GRADIENT if cfg.imitation.pose_gradient_weight else ()
    return cloning + poses


def make_policy_loss(cfg: PretrainConfig, nets: SkillNets, skeleton: Skeleton) -> Loss:
    """PPO's surrogate, the cloning loss while assisted, the pose gradient, and diversity."""
    ppo = cfg.ppo
    imitation = cfg.imitation
    loss = clipped_surrogate(nets.policy, ppo.clip, ppo.action_bound, ppo.action_bound_weight)
    if cfg.assisted and imitation.cloning_weight:
        loss = with_cloning_loss(loss, imitation.cloning_weight)
    if cfg.assisted and imitation.pose_gradient_weight:
        loss = with_pose_gradient(
            loss,
            torch.from_numpy(skeleton.legs),
            imitation.pose_gradient_weight,
            imitation.reward_scale,
            assisted=imitation.pose_gradient_assisted,
        )
    enc = cfg.enc
    return with_diversity_loss(
        nets.policy,
        loss,
        weight=enc.diversity_weight,
        target=enc.diversity_tar,
        share=enc.diversity_share,
    )


def adapt(cfg: PretrainConfig, training: SkillTraining) -> None:
    """Set what follows the progress of the curriculum: the action std."""
    if isinstance(training.env, AssistedEnv):
        progress = float(training.env.curriculum.progress)
        training.nets.policy.std = schedule_action_std(cfg.ppo, progress)


def schedule_action_std(ppo: PPOConfig, progress: float) -> float:
    """Action std at a progress of 0 to 1: large while balance is learned, then small, so that the
    motion of the clips can be followed."""
    return ppo.action_std * (ppo.action_std_final / ppo.action_std) ** progress


def warm_up(cfg: PretrainConfig, data: TrainingData, training: SkillTraining) -> None:
    """Encoder and policy learn from the clips alone, before the first simulated step."""
    nets = training.nets
    warm = cfg.warm
    warm_encoder(nets.encoder, data.demos, warm.encoder_steps, warm.lr, training.rng)
    clips = CloneData(
        data.library,
        nets.action_scale,
        nets.encoder.clip_latents,
        read_ground(data.library, data.character.skeleton),
    )
    config = CloneConfig(steps=warm.clone_steps, lr=warm.lr, batch=warm.batch)
    clone(nets.policy, clips, config, training.rng)
    training.env.reset(torch.arange(training.env.num_envs))
