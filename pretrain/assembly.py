"""A configuration and clips to what is trained: networks, environment, rewards and learners (Peng et al. 2022), their warm
start, and what changes with the samples seen. The one place that knows both the settings and the rooms they are for."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from pretrain.ase.clone import clone
from pretrain.ase.latents import LatentSchedule, SkillEnv
from pretrain.ase.nets import Sizes, SkillNets, make_nets
from pretrain.ase.skill import diverse_loss, encoder_loss, skill_reward, warm_encoder
from pretrain.ase.style import demonstrations, remembered, style_loss, style_reward
from pretrain.ase.symmetry import privileged_mirror, symmetry
from pretrain.assist.curriculum import AssistSchedule, Curriculum
from pretrain.assist.getup import GetUpAssist
from pretrain.assist.getup_reward import getup_reward
from pretrain.assist.imitation import (
    FOR_CLONING,
    FOR_POSE_GRADIENT,
    imitation_reward,
    with_cloning_loss,
    with_pose_gradient,
)
from pretrain.assist.tracking_termination import TrackingTermination, nearer_reward
from pretrain.characters.skeleton import Skeleton
from pretrain.config import PPOConfig, PretrainConfig
from pretrain.material import Material, control_steps
from pretrain.motion.clip import CONTROL_RATE
from pretrain.rl.learner import Learner
from pretrain.rl.loop import LoopConfig, Objective
from pretrain.rl.ppo import FOR_POLICY, FOR_VALUE, Loss, clipped_surrogate, value_loss
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Noise
from pretrain.rl.training import Training
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv
from pretrain.sim.falls import NOBODY, Protection
from pretrain.sim.ground import Ground, ground_of

SkillTraining = Training[SkillNets, SkillEnv]


def build(cfg: PretrainConfig, material: Material) -> SkillTraining:
    """Fresh networks, an environment and the ASE objective: style and skill rewards, four learners. Not yet warm."""
    seeds = torch.Generator().manual_seed(cfg.seed)
    streams = [torch.Generator().manual_seed(int(s)) for s in torch.randint(2**62, (3,), generator=seeds)]
    rng, env_rng, skill_rng = streams
    skeleton = material.character.skeleton
    ground = ground_of(material.library, skeleton, cfg.curriculum.steady_above)
    clocks = keeps_time(cfg, ground)
    privileged = privileged_mirror(skeleton) if clocks else None
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
    nets = make_nets(sizes, material.library, material.demos, skeleton.num_hinges, both_sides, rng)
    env = CharacterEnv(
        make_backend(cfg.engine, material.character, cfg.num_envs, cfg.threads),
        skeleton,
        material.library,
        window=cfg.num_disc_obs_steps,
        episode_length=control_steps(cfg.episode_length),
        rng=env_rng,
        curriculum=make_curriculum(cfg, material, ground),
        protection=protection(cfg, ground),
        lift=make_lift(cfg, ground),
        ground=ground,
    )
    schedule = LatentSchedule(
        cfg.latent.latent_dim,
        max(1, control_steps(cfg.latent.latent_time_min)),
        control_steps(cfg.latent.latent_time_max),
        cfg.latent.clip_latent_prob,
        cfg.latent.near_prob,
        cfg.latent.near_steps or math.inf,
        cfg.latent.near_after,
        cfg.latent.own_return,
    )
    clips = demonstrations(material.library, skeleton, cfg.num_disc_obs_steps, rate=CONTROL_RATE)
    grace, lag = control_steps(cfg.leash.grace), control_steps(cfg.leash.lag)
    leash = TrackingTermination(clips, nets.discriminator.spread, cfg.leash.length, grace, lag, cfg.leash.liveliest)
    skills = SkillEnv(env, nets.action_scale, schedule, nets.encoder.clip_latents, leash, skill_rng, clocks)
    replay = remembered(cfg.disc.disc_buffer_size, material.demos)
    noise = Noise(cfg.ppo.noise_color, torch.zeros(cfg.num_envs, skeleton.num_hinges))
    loop = LoopConfig(cfg.ppo.horizon, cfg.ppo.gamma, cfg.ppo.lam)
    objective = ase_objective(cfg, nets, material, replay, ground)
    training = Training(nets, skills, objective, loop, noise, rng, memory={"replay": replay})
    adapt(cfg, training)
    return training


def keeps_time(cfg: PretrainConfig, ground: Ground) -> bool:
    """Whether anything asks the clocks: the leash, a reward, or a hand that leads, which over clips that move on steadily
    there is not."""
    of = cfg.imitation
    weighs = any(weight > 0 for weight in (of.reward_weight, of.aim_weight, of.pose_weight))
    asked = cfg.leash.timed_from is not None or cfg.refine.correct > 0 or weighs
    return asked or not bool(ground.steady.all())


def make_curriculum(cfg: PretrainConfig, material: Material, ground: Ground) -> Curriculum:
    """Those who are to rise have a hand of their own (`make_lift`)."""
    of = cfg.curriculum
    hand = AssistSchedule(of.assist_start, of.assist_steps, of.assist_rate)
    steps = control_steps(cfg.episode_length)
    return Curriculum(
        material.library.weights,
        episode_length=steps,
        hand=hand,
        held=~ground.rising,
        focus=of.focus,
        sought=~ground.rising,  # their time on the ground is no success, so they would always seem to need more
    )


def make_lift(cfg: PretrainConfig, ground: Ground) -> GetUpAssist:
    """Nobody is lifted where no clip shows how to get up."""
    of = cfg.recovery
    return GetUpAssist(of.lift_start * ground.rising, of.lift_rate)


def protection(cfg: PretrainConfig, ground: Ground) -> Protection:
    """Nobody is protected where no clip shows how to get up."""
    of = cfg.recovery
    return Protection(control_steps(of.patience), of.protected_prob, of.lying_prob) if ground.rising.any() else NOBODY


def ase_objective(
    cfg: PretrainConfig, nets: SkillNets, material: Material, replay: Replay, ground: Ground
) -> Objective:
    """Peng et al. 2022: move in style, stay tellable apart, differ when z differs."""
    ppo, disc, enc = cfg.ppo, cfg.disc, cfg.enc
    acting, valuing = (*nets.policy.inputs.names, *FOR_POLICY), (*nets.value.inputs.names, *FOR_VALUE)
    acting += (FOR_CLONING if cfg.imitation.aim_weight else ()) + (
        FOR_POSE_GRADIENT if cfg.imitation.pose_weight else ()
    )
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
    rise = {"rise": (cfg.recovery.rise_reward_weight, getup_reward(ground))} if ground.rising.any() else {}
    at_moment = imitation_reward(cfg.imitation.reward_scale)
    imitation = {"imitation": (cfg.imitation.reward_weight, at_moment)} if cfg.imitation.reward_weight else {}
    return Objective(
        rewards={
            "style": (disc.disc_reward_weight, style_reward(nets.discriminator, disc.disc_reward_scale)),
            "skill": (enc.enc_reward_weight, skill_reward(nets.encoder)),
            "nearer": (cfg.leash.nearer_reward_weight, nearer_reward),
            **rise,
            **imitation,
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


def skill_policy_loss(cfg: PretrainConfig, nets: SkillNets, skeleton: Skeleton, samples: int) -> Loss:
    """Of a policy that has seen so many samples: earn, aim as the clip where it is held, meet its poses, differ when z does."""
    ppo, of = cfg.ppo, cfg.imitation
    surrogate = clipped_surrogate(nets.policy, ppo.clip, ppo.action_bound, ppo.action_bound_weight)
    if of.aim_weight:
        surrogate = with_cloning_loss(surrogate, of.aim_weight)
    if of.pose_weight and samples >= of.pose_from:
        surrogate = with_pose_gradient(surrogate, torch.from_numpy(skeleton.legs), of.pose_weight, of.reward_scale)
    return diverse_loss(nets.policy, surrogate, cfg.enc.diversity_weight, cfg.enc.diversity_tar)


def adapt(cfg: PretrainConfig, training: SkillTraining) -> None:
    """What depends on how many samples were seen: the width of exploration, the leash, and what is asked of the policy."""
    objective, nets, samples = training.objective, training.nets, training.samples
    nets.policy.std = exploration(cfg.ppo, samples)
    training.env.leash.timed = cfg.leash.timed_from is not None and samples >= cfg.leash.timed_from
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
