"""Builds an AMP run from a configuration and a library: networks, environment, objective."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Generator, nn

from hlc.amp.config import AmpConfig
from hlc.amp.env import AmpEnv
from hlc.goals import Goals
from hlc.learners import make_policy_learner, make_value_learner
from hlc.nets import make_nets
from hlc.parent import Parent, SimulationConfig
from pretrain.ase.discriminator import (
    Discriminator,
    make_disc_learner,
    make_replay,
    style_reward,
)
from pretrain.ase.reference_windows import ReferenceWindows, make_reference_windows
from pretrain.motion.clip import control_steps
from pretrain.rl.generators import spawn_generators
from pretrain.rl.iteration import LoopConfig, Objective
from pretrain.rl.nets import GaussianPolicy, Value
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Noise
from pretrain.rl.training import Training
from pretrain.sim.env import ActionScale


@dataclass(frozen=True)
class AmpNets:
    """pi(a|s,g), V(s,g) and the discriminator."""

    policy: GaussianPolicy
    value: Value
    discriminator: Discriminator

    def modules(self) -> dict[str, nn.Module]:
        return {"policy": self.policy, "value": self.value, "disc": self.discriminator}


AmpTraining = Training[AmpNets, AmpEnv]


def build(cfg: AmpConfig, parent: Parent) -> AmpTraining:
    """Fresh networks, the characters, and the objective: task and style rewards. (AMP eq. 4.)"""
    rng, start_rng, goal_rng = spawn_generators(cfg.seed, 3)
    hinges = parent.character.skeleton.num_hinges
    demos = make_reference_windows(
        parent.clips, parent.character.skeleton, parent.skills.window_length
    )
    actor = make_nets(cfg.ppo, cfg.chosen_task(), parent.clips, hinges, rng)
    discriminator = Discriminator(demos, cfg.disc.hidden, rng, conditional=False)
    nets = AmpNets(actor.policy, actor.value, discriminator)
    replay = make_replay(cfg.disc.disc_buffer_size, demos)
    noise = Noise.begin(cfg.ppo.noise_color, cfg.num_envs, hinges, rng)
    loop = LoopConfig(cfg.ppo.horizon, cfg.ppo.gamma, cfg.ppo.lam, cfg.task_reward_weight)
    return Training(
        nets,
        make_env(cfg, parent, start_rng, goal_rng),
        make_objective(cfg, nets, demos, replay),
        loop,
        noise,
        rng,
        extra_state={"replay": replay},
    )


def make_env(cfg: AmpConfig, parent: Parent, starts: Generator, goals: Generator) -> AmpEnv:
    """`cfg.num_envs` worlds of the task, with a generator each for the starts and the goals."""
    task = cfg.chosen_task()
    simulated = SimulationConfig(control_steps(cfg.episode_length), cfg.engine, cfg.threads)
    env = parent.simulation(cfg.num_envs, task.scene(), simulated, starts)
    scale = ActionScale.from_library(parent.clips)
    return AmpEnv(env, scale, task, Goals(task, cfg.num_envs, 1, goals))


def make_objective(
    cfg: AmpConfig, nets: AmpNets, demos: ReferenceWindows, replay: Replay
) -> Objective:
    disc = cfg.disc
    return Objective(
        rewards={
            "style": (
                disc.disc_reward_weight,
                style_reward(nets.discriminator, disc.disc_reward_scale),
            ),
        },
        policy=make_policy_learner(cfg.ppo, nets.policy),
        value=make_value_learner(cfg.ppo, nets.value),
        others=(make_disc_learner(disc, nets.discriminator, demos, replay),),
    )
