"""A configuration and clips to what is trained: networks, environment, rewards and learners (Peng et al. 2022), their warm
start, and what changes with the samples seen. The one place that knows both the settings and the rooms they are for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Generator, Tensor

from pretrain.ase.clone import clone
from pretrain.ase.latents import LatentSchedule, SkillEnv
from pretrain.ase.nets import Sizes, SkillNets, make_nets
from pretrain.ase.skill import diverse_loss, encoder_loss, skill_reward, warm_encoder
from pretrain.ase.style import demonstrations, remembered, style_loss, style_reward
from pretrain.ase.symmetry import symmetry
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
from pretrain.sim.env import CharacterEnv
from pretrain.sim.falls import NOBODY, Protection
from pretrain.sim.ground import Ground, ground_of
from pretrain.training_data import Material, control_steps

SkillTraining = Training[SkillNets, SkillEnv | AssistedEnv]
WeightedRewards = dict[str, tuple[float, Reward]]


def build(cfg: PretrainConfig, material: Material) -> SkillTraining:
    """Fresh networks, an environment and the ASE objective: style and skill rewards, four learners. Not yet warm."""
    seeds = Generator().manual_seed(cfg.seed)
    streams = [Generator().manual_seed(int(s)) for s in torch.randint(2**62, (3,), generator=seeds)]
    rng, env_rng, skill_rng = streams
    ground = ground_of(material.library, material.character.skeleton, cfg.curriculum.steady_above)
    nets = build_nets(cfg, material, ground, rng)
    curriculum = make_curriculum(cfg, material, ground) if cfg.assisted else None
    env = build_env(cfg, material, ground, curriculum, env_rng)
    skills = SkillEnv(
        env,
        nets.action_scale,
        latent_schedule(cfg),
        nets.encoder.clip_latents,
        rng=skill_rng,
        near_probs=near_probs(cfg, curriculum) if curriculum else None,
    )
    replay = remembered(cfg.disc.disc_buffer_size, material.demos)
    training = Training(
        nets,
        assisted_env(cfg, material, nets, skills, curriculum) if curriculum else skills,
        ase_objective(cfg, nets, material, replay, ground),
        LoopConfig(cfg.ppo.horizon, cfg.ppo.gamma, cfg.ppo.lam),
        Noise(cfg.ppo.noise_color, torch.zeros(cfg.num_envs, material.character.skeleton.num_hinges)),
        rng,
        memory={"replay": replay},
    )
    adapt(cfg, training)
    return training


def build_nets(cfg: PretrainConfig, material: Material, ground: Ground, rng: Generator) -> SkillNets:
    """Fresh networks; the value net has the privileged observation where references are tracked."""
    skeleton = material.character.skeleton
    privileged = privileged_mirror(skeleton) if tracks_reference(cfg, ground) else None
    sizes = Sizes(
        cfg.latent.latent_dim,
        policy=cfg.ppo.hidden,
        value=cfg.ppo.value_hidden,
        disc=cfg.disc.hidden,
        enc=cfg.enc.hidden,
        action_std=cfg.ppo.action_std,
        average_decay=cfg.ppo.average_decay,
        privileged=len(privileged) if privileged else 0,
    )
    both_sides = symmetry(skeleton, material.library.images, cfg.latent.latent_dim, cfg.num_disc_obs_steps, privileged)
    return make_nets(sizes, material.library, material.demos, skeleton.num_hinges, both_sides, rng)


def build_env(
    cfg: PretrainConfig, material: Material, ground: Ground, curriculum: Curriculum | None, rng: Generator
) -> CharacterEnv:
    """The simulated characters, whose episodes begin in each clip as often as `curriculum` has it, if there is one."""
    return CharacterEnv(
        make_backend(cfg.engine, material.character, cfg.num_envs, cfg.threads),
        material.character.skeleton,
        material.library,
        window=cfg.num_disc_obs_steps,
        episode_length=control_steps(cfg.episode_length),
        rng=rng,
        clip_weights=(lambda: curriculum.weights) if curriculum else None,
        protection=protection(cfg, ground),
        ground=ground,
    )


def latent_schedule(cfg: PretrainConfig) -> LatentSchedule:
    latent = cfg.latent
    return LatentSchedule(
        latent.latent_dim,
        max(1, control_steps(latent.latent_time_min)),
        control_steps(latent.latent_time_max),
        latent.clip_latent_prob,
        latent.near_prob,
        latent.own_return,
    )


def near_probs(cfg: PretrainConfig, curriculum: Curriculum) -> Callable[[], Tensor]:
    near = NearLatents(cfg.latent.near_prob, cfg.latent.near_steps or math.inf, cfg.latent.near_after)
    return lambda: curriculum.near_probs(near)


def assisted_env(
    cfg: PretrainConfig, material: Material, nets: SkillNets, skills: SkillEnv, curriculum: Curriculum
) -> AssistedEnv:
    """`skills` with the training aids of `cfg`."""
    ground = skills.env.falls.ground
    demos = demonstrations(material.library, material.character.skeleton, cfg.num_disc_obs_steps, rate=CONTROL_RATE)
    limits = TrackingLimits(
        cfg.leash.length, control_steps(cfg.leash.grace), control_steps(cfg.leash.lag), cfg.leash.liveliest
    )
    return AssistedEnv(
        skills,
        curriculum,
        make_getup_assist(cfg, ground),
        TrackingTermination(demos, nets.discriminator.spread, limits, cfg.num_envs),
        tracks=tracks_reference(cfg, ground),
    )


def tracks_reference(cfg: PretrainConfig, ground: Ground) -> bool:
    """Whether anything reads the reference motions: the termination, a reward, refinement, or an assistance that pulls
    towards them, which there is not where all clips move on steadily."""
    imitation = cfg.imitation
    weighs = any(weight > 0 for weight in (imitation.reward_weight, imitation.aim_weight, imitation.pose_weight))
    read = cfg.leash.timed_from is not None or cfg.refine.correct > 0 or weighs
    return cfg.assisted and (read or not bool(ground.steady.all()))


def make_curriculum(cfg: PretrainConfig, material: Material, ground: Ground) -> Curriculum:
    """Clips that rise have an assistance of their own (`make_getup_assist`)."""
    curriculum = cfg.curriculum
    return Curriculum(
        material.library.weights,
        episode_length=control_steps(cfg.episode_length),
        schedule=AssistSchedule(curriculum.assist_start, curriculum.assist_steps, curriculum.assist_rate),
        assisted=~ground.rising,
        focus=curriculum.focus,
        focused=~ground.rising,  # their time on the ground is no success, so they would always seem to need more
    )


def make_getup_assist(cfg: PretrainConfig, ground: Ground) -> GetUpAssist:
    """Of strength 0 in clips that do not rise."""
    return GetUpAssist(cfg.recovery.lift_start * ground.rising, cfg.recovery.lift_rate)


def protection(cfg: PretrainConfig, ground: Ground) -> Protection:
    """No episode is protected where no clip shows how to get up."""
    recovery = cfg.recovery
    if not ground.rising.any():
        return NOBODY
    return Protection(control_steps(recovery.patience), recovery.protected_prob, recovery.lying_prob)


def ase_objective(
    cfg: PretrainConfig, nets: SkillNets, material: Material, replay: Replay, ground: Ground
) -> Objective:
    """Peng et al. 2022: move in style, stay tellable apart, differ when z differs."""
    ppo, disc, enc = cfg.ppo, cfg.disc, cfg.enc
    acting = (*nets.policy.inputs.names, *FOR_POLICY, *imitation_keys(cfg))
    valuing = (*nets.value.inputs.names, *FOR_VALUE)
    style = style_loss(
        nets.discriminator,
        material.demos,
        replay,
        grad_penalty=disc.disc_grad_penalty,
        logit_reg=disc.disc_logit_reg,
        replay_share=disc.disc_replay_share,
    )

    def adam(net: torch.nn.Module, lr: float) -> torch.optim.Optimizer:
        return torch.optim.Adam(net.parameters(), lr, fused=True)

    policy = adam(nets.policy, ppo.lr), ppo.epochs, ppo.minibatch
    value = adam(nets.value, ppo.value_lr), ppo.value_epochs, ppo.value_minibatch
    tell_clips = adam(nets.discriminator, disc.lr), 1, disc.minibatch, disc.rows
    tell_skills = adam(nets.encoder, enc.lr), 1, enc.minibatch, enc.rows
    return Objective(
        rewards={
            "style": (disc.disc_reward_weight, style_reward(nets.discriminator, disc.disc_reward_scale)),
            "skill": (enc.enc_reward_weight, skill_reward(nets.encoder)),
            **(assist_rewards(cfg, ground) if cfg.assisted else {}),
        },
        policy=Learner(
            "policy",
            acting,
            skill_policy_loss(cfg, nets, material.character.skeleton, 0),
            *policy,
            target_kl=ppo.target_kl,
        ),
        value=Learner("value", valuing, value_loss(nets.value), *value),
        others=(
            Learner("disc", ("window", "z_clip"), style, *tell_clips),
            Learner("enc", ("window", "z"), encoder_loss(nets.encoder, material.demos), *tell_skills),
        ),
    )


def assist_rewards(cfg: PretrainConfig, ground: Ground) -> WeightedRewards:
    """Reward terms of the training aids, name -> (weight, term)."""
    rewards: WeightedRewards = {"nearer": (cfg.leash.nearer_reward_weight, nearer_reward)}
    if ground.rising.any():
        rewards["rise"] = (cfg.recovery.rise_reward_weight, getup_reward(ground))
    if cfg.imitation.reward_weight:
        rewards["imitation"] = (cfg.imitation.reward_weight, imitation_reward(cfg.imitation.reward_scale))
    return rewards


def imitation_keys(cfg: PretrainConfig) -> tuple[str, ...]:
    """What the policy's loss reads of a batch for imitation."""
    if not cfg.assisted:
        return ()
    cloning = FOR_CLONING if cfg.imitation.aim_weight else ()
    poses = FOR_POSE_GRADIENT if cfg.imitation.pose_weight else ()
    return cloning + poses


def skill_policy_loss(cfg: PretrainConfig, nets: SkillNets, skeleton: Skeleton, samples: int) -> Loss:
    """Of a policy that has seen so many samples: the PPO surrogate, cloning while it is assisted, poses, diversity."""
    ppo, imitation = cfg.ppo, cfg.imitation
    surrogate = clipped_surrogate(nets.policy, ppo.clip, ppo.action_bound, ppo.action_bound_weight)
    if cfg.assisted and imitation.aim_weight:
        surrogate = with_cloning_loss(surrogate, imitation.aim_weight)
    if cfg.assisted and imitation.pose_weight and samples >= imitation.pose_from:
        legs = torch.from_numpy(skeleton.legs)
        surrogate = with_pose_gradient(surrogate, legs, imitation.pose_weight, imitation.reward_scale)
    return diverse_loss(nets.policy, surrogate, cfg.enc.diversity_weight, cfg.enc.diversity_tar)


def adapt(cfg: PretrainConfig, training: SkillTraining) -> None:
    """What depends on how many samples were seen: the width of exploration, the termination, and the policy's loss."""
    objective, nets, samples = training.objective, training.nets, training.samples
    nets.policy.std = exploration(cfg.ppo, samples)
    if isinstance(training.env, AssistedEnv):
        locked = cfg.leash.timed_from is not None and samples >= cfg.leash.timed_from
        training.env.termination.phase_locked = locked
    policy = replace(objective.policy, loss=skill_policy_loss(cfg, nets, training.env.env.skeleton, samples))
    training.objective = replace(objective, policy=policy)


def exploration(ppo: PPOConfig, samples: int) -> float:
    """Action std after so many samples: wide while balance is learned, then narrow, so that the clips' motion can be met."""
    return ppo.action_std * (ppo.action_std_final / ppo.action_std) ** min(samples / ppo.action_std_samples, 1.0)


def warm_up(cfg: PretrainConfig, material: Material, training: SkillTraining) -> None:
    """Encoder and policy learn from the clips alone, before the first simulated step."""
    nets, warm, rng = training.nets, cfg.warm, training.rng
    warm_encoder(nets.encoder, material.demos, warm.encoder_steps, warm.lr, rng)
    clone(
        nets.policy,
        material.library,
        nets.action_scale,
        nets.encoder.clip_latents,
        ground_of(material.library, material.character.skeleton),
        steps=warm.clone_steps,
        lr=warm.lr,
        batch=warm.batch,
        rng=rng,
    )
    training.env.reset(torch.arange(training.env.num_envs))
