"""The objective of a configuration (Peng et al. 2022): rewards, losses and a learner for each
network."""

from __future__ import annotations

import torch

from pretrain.ase.discriminator import make_disc_learner, style_reward
from pretrain.ase.encoder import encoder_loss, skill_reward, with_diversity_loss
from pretrain.ase.nets import SkillNets
from pretrain.ase.parent_skills import PARENT, ParentSkills, read_parent_actions
from pretrain.assist.foot_swing import foot_reward
from pretrain.assist.getup_reward import getup_reward
from pretrain.assist.imitation import (
    CLONING,
    CLONING_WEIGHT,
    FOR_POSE_GRADIENT,
    imitation_reward,
    with_pose_gradient,
)
from pretrain.assist.tracking_termination import nearer_reward
from pretrain.characters.skeleton import Skeleton
from pretrain.config import PretrainConfig
from pretrain.rl.action_smoothing import NEIGHBORS, average_neighbors
from pretrain.rl.adam import Adam
from pretrain.rl.iteration import Objective, Reward
from pretrain.rl.learner import Learner
from pretrain.rl.mean_action_loss import with_mean_action_loss
from pretrain.rl.ppo import Loss, clipped_surrogate, policy_loss
from pretrain.rl.ppo_learners import make_policy_learner, make_value_learner
from pretrain.rl.replay import Replay
from pretrain.sim.ground import Ground
from pretrain.training_data import TrainingData

WeightedRewards = dict[str, tuple[float, Reward]]


def make_objective(
    cfg: PretrainConfig,
    nets: SkillNets,
    data: TrainingData,
    replay: Replay,
    ground: Ground,
    *,
    parent: ParentSkills | None = None,
) -> Objective:
    """Peng et al. 2022: rewards for style and for identifiable skills, and a loss for diversity.
    With a `parent`, the policy also keeps its skills."""
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
        policy=make_policy_learner(
            cfg.ppo,
            nets.policy,
            make_policy_loss(cfg, nets, data.character.skeleton, parent),
            (
                *imitation_keys(cfg),
                *(NEIGHBORS.entries if cfg.ppo.smoothing_weight else ()),
                *(PARENT.entries if parent else ()),
            ),
        ),
        value=make_value_learner(cfg.ppo, nets.value),
        others=(
            make_disc_learner(cfg.disc, nets.discriminator, data.demos, replay),
            make_enc_learner(cfg, nets, data),
        ),
        targets=(
            *((average_neighbors,) if cfg.ppo.smoothing_weight else ()),
            *((read_parent_actions(parent),) if parent else ()),
        ),
    )


def count_values(cfg: PretrainConfig, ground: Ground) -> int:
    """Outputs of the value net: one for all rewards, or one for each whose weight is not 0, as
    `stack_rewards` stacks them."""
    assist = make_assist_rewards(cfg, ground) if cfg.assisted else {}
    weights = [
        cfg.disc.disc_reward_weight,
        cfg.enc.enc_reward_weight,
        *(weight for weight, _ in assist.values()),
    ]
    return 1 if cfg.ppo.critics == "joint" else max(1, sum(weight > 0 for weight in weights))


def make_enc_learner(cfg: PretrainConfig, nets: SkillNets, data: TrainingData) -> Learner:
    enc = cfg.enc
    loss = encoder_loss(
        nets.encoder,
        data.demos,
        weight=enc.enc_loss_weight,
        anchor_weight=enc.anchor_weight,
        uniformity_weight=enc.uniformity_weight,
    )
    return Learner(
        "enc",
        ("window", "z"),
        loss,
        Adam(nets.encoder.parameters(), enc.lr),
        epochs=1,
        minibatch=enc.minibatch,
        max_rows=enc.rows,
    )


def make_assist_rewards(cfg: PretrainConfig, ground: Ground) -> WeightedRewards:
    """Reward terms of the training aids, name -> (weight, term)."""
    rewards: WeightedRewards = {}
    if ground.rising.any():
        rewards["getup"] = (cfg.recovery.getup_reward_weight, getup_reward(ground))
    imitation = cfg.imitation
    if imitation.reward_weight:
        rewards["imitation"] = (imitation.reward_weight, imitation_reward)
    if imitation.nearer_weight:
        rewards["nearer"] = (imitation.nearer_weight, nearer_reward)
    if imitation.foot_weight:
        rewards["feet"] = (imitation.foot_weight, foot_reward)
    return rewards


def imitation_keys(cfg: PretrainConfig) -> tuple[str, ...]:
    """Keys of a batch that the policy's imitation losses read."""
    if not cfg.assisted:
        return ()
    cloning = CLONING.entries if clones_reference(cfg) else ()
    poses = FOR_POSE_GRADIENT if cfg.imitation.pose_gradient_weight else ()
    return cloning + poses


def clones_reference(cfg: PretrainConfig) -> bool:
    """Whether the policy clones the references' actions in switches."""
    return cfg.curriculum.switch_assist_start > 0


def make_policy_loss(
    cfg: PretrainConfig, nets: SkillNets, skeleton: Skeleton, parent: ParentSkills | None
) -> Loss:
    """PPO's surrogate, cloning in switches, the pose gradient, smoothing, the distance to the
    parent, and diversity."""
    ppo = cfg.ppo
    imitation = cfg.imitation
    loss = clipped_surrogate(nets.policy, ppo.clip, ppo.action_bound, ppo.action_bound_weight)
    if cfg.assisted and clones_reference(cfg):
        loss = with_mean_action_loss(loss, CLONING, CLONING_WEIGHT)
    if cfg.assisted and imitation.pose_gradient_weight:
        loss = with_pose_gradient(
            loss,
            torch.from_numpy(skeleton.legs),
            imitation.pose_gradient_weight,
        )
    if ppo.smoothing_weight:
        loss = with_mean_action_loss(loss, NEIGHBORS, ppo.smoothing_weight)
    if parent:
        loss = with_mean_action_loss(loss, PARENT, cfg.warm.parent_weight)
    enc = cfg.enc
    if not enc.diversity_weight or not enc.diversity_share:
        return policy_loss(nets.policy, loss)
    return with_diversity_loss(
        nets.policy,
        loss,
        weight=enc.diversity_weight,
        target=enc.diversity_tar,
        share=enc.diversity_share,
    )
