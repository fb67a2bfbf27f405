"""Builds a tracking run from a configuration and clips: networks, environment, objective."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor, nn

from pretrain.characters.state import unflatten
from pretrain.motion.clip import CONTROL_RATE, control_steps
from pretrain.rl.awr import weighted_regression
from pretrain.rl.generators import spawn_generators
from pretrain.rl.iteration import LoopConfig, Objective
from pretrain.rl.nets import GaussianPolicy, Inputs, Value, make_fixed_normalizer, mlp
from pretrain.rl.ppo import Surrogate, clipped_surrogate, policy_loss
from pretrain.rl.ppo_learners import make_policy_learner, make_value_learner
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Noise
from pretrain.rl.training import Training
from pretrain.sim.backend import make_backend
from pretrain.sim.env import ActionScale, CharacterEnv, EpisodeConfig
from pretrain.sim.features import proprioception
from pretrain.tracking.config import TrackingConfig
from pretrain.tracking.deepmimic_reward import deepmimic_reward, joint_weights
from pretrain.tracking.discriminator import (
    DifferenceDiscriminator,
    difference_reward,
    make_difference_learner,
)
from pretrain.tracking.env import TrackingConditions, TrackingEnv, observe_targets
from pretrain.tracking.pose import pose_difference
from pretrain.tracking.references import References, make_references
from pretrain.training_data import TrainingData

WINDOW = 2  # frames of a style window, the fewest; only the last is read


@dataclass(frozen=True)
class TrackingNets:
    """pi(a|s, reference), V(s, reference) and, for ADD, the discriminator."""

    policy: GaussianPolicy
    value: Value
    discriminator: DifferenceDiscriminator | None = None

    def modules(self) -> dict[str, nn.Module]:
        nets: dict[str, nn.Module] = {"policy": self.policy, "value": self.value}
        return nets | ({"disc": self.discriminator} if self.discriminator else {})


TrackingTraining = Training[TrackingNets, TrackingEnv]


def build(cfg: TrackingConfig, data: TrainingData) -> TrackingTraining:
    """Fresh networks, the characters, and the objective."""
    rng, start_rng = spawn_generators(cfg.seed, 2)
    hinges = data.character.skeleton.num_hinges
    env = make_env(cfg, data, cfg.num_envs, start_rng)
    width = pose_difference(env.pose(), env.reference()).shape[1]
    nets = make_nets(cfg, env.references, width, rng)
    replay = Replay(
        cfg.add.disc_buffer_size if nets.discriminator else 1, difference=torch.zeros(width)
    )
    return Training(
        nets,
        env,
        make_objective(cfg, nets, replay),
        LoopConfig(cfg.ppo.horizon, cfg.ppo.gamma, cfg.ppo.lam, float(cfg.reward == "deepmimic")),
        Noise.begin(cfg.ppo.noise_color, cfg.num_envs, hinges, rng),
        rng,
        extra_state={"replay": replay},
    )


def make_env(cfg: TrackingConfig, data: TrainingData, num_envs: int, rng: Generator) -> TrackingEnv:
    """`num_envs` characters, each with the reward of `cfg.deepmimic`."""
    skeleton = data.character.skeleton
    env = CharacterEnv(
        make_backend(cfg.engine, data.character, num_envs, cfg.threads),
        skeleton,
        data.library,
        EpisodeConfig(WINDOW, control_steps(cfg.episode_length)),
        rng=rng,
    )
    reward = partial(
        deepmimic_reward,
        cfg=cfg.deepmimic,
        skeleton=skeleton,
        weights=joint_weights(cfg.deepmimic, skeleton),
    )
    scale = ActionScale.from_library(data.library)
    seconds = cfg.episode_length + max(cfg.tar_obs_steps) / CONTROL_RATE
    references = make_references(data.library, skeleton, seconds, cfg.deepmimic.joint_err_w)
    conditions = TrackingConditions(
        cfg.tar_obs_steps, cfg.pose_termination_dist, keep_differences=cfg.reward == "add"
    )
    return TrackingEnv(env, scale, references, reward, conditions)


def make_nets(
    cfg: TrackingConfig, references: References, width: int, rng: Generator
) -> TrackingNets:
    """Fresh networks, whose normalizers are fixed by the clips; differences have `width`."""
    ppo = cfg.ppo
    states = unflatten(references.library.frames)
    target = observe_own_targets(references, cfg.tar_obs_steps)
    normalizers = {
        "obs": make_fixed_normalizer(proprioception(states)),
        "target": make_fixed_normalizer(target),
    }
    observed = sum(len(normalizer.mean) for normalizer in normalizers.values())
    hinges = states.joint_pos.shape[-1]
    body = mlp([observed, *ppo.hidden, hinges], last_scale=0.1, rng=rng)
    value = mlp([observed, *ppo.value_hidden, 1], rng=rng)
    adds = cfg.reward == "add"
    return TrackingNets(
        GaussianPolicy(Inputs(normalizers), body, ppo.action_std),
        Value(Inputs(normalizers), value),
        DifferenceDiscriminator(width, cfg.add.hidden, rng) if adds else None,
    )


def observe_own_targets(references: References, steps: tuple[int, ...]) -> Tensor:
    """The observation of the reference in every frame of the clips, by a body that follows it."""
    library = references.library
    clips = torch.arange(len(library.names)).repeat_interleave(library.lengths)
    times = (torch.arange(len(clips)) - library.starts[clips]) / CONTROL_RATE
    return observe_targets(references, unflatten(library.frames), clips, times, steps)


def make_objective(cfg: TrackingConfig, nets: TrackingNets, replay: Replay) -> Objective:
    loss = policy_loss(nets.policy, make_surrogate(cfg, nets.policy))
    policy = make_policy_learner(cfg.ppo, nets.policy, loss)
    value = make_value_learner(cfg.ppo, nets.value)
    net = nets.discriminator
    if net is None:
        return Objective({}, policy, value)
    rewards = {"add": (1.0, difference_reward(net, cfg.add.disc_reward_scale))}
    return Objective(rewards, policy, value, (make_difference_learner(cfg.add, net, replay),))


def make_surrogate(cfg: TrackingConfig, policy: GaussianPolicy) -> Surrogate:
    ppo = cfg.ppo
    awr = cfg.awr
    if cfg.algorithm == "ppo":
        return clipped_surrogate(policy, ppo.clip, ppo.action_bound, ppo.action_bound_weight)
    return weighted_regression(
        policy, awr.awr_temp, awr.a_weight_clip, ppo.action_bound, ppo.action_bound_weight
    )
