"""Cloning: the planner acts, and the controller is regressed on its decisions before PPO begins.

(Expert iteration with one round: Anthony et al. 2017, "Thinking fast and slow with deep learning
and tree search".)"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import ceil

import torch
from torch import Generator, Tensor, nn

from hlc.baselines import make_planner
from hlc.config import CloneConfig, HlcConfig
from hlc.nets import ControllerNets
from hlc.parent import Parent
from hlc.task_env import on_sphere
from hlc.worlds import make_worlds
from pretrain.rl.adam import Adam
from pretrain.rl.nets import GaussianPolicy
from pretrain.rl.rollout import Batch

SEED = 1000  # added to the run's seed; does not change the draws of other parts


@dataclass(frozen=True)
class Labels:
    """The planner's observations, (n, ...) each, and the skills that it chose, (n, D)."""

    obs: Batch
    z: Tensor
    reward: float  # mean task reward of a decision


def count_planned(clone: CloneConfig) -> int:
    """The decisions that are planned: `clone.decisions`, rounded up to whole rounds of
    `clone.worlds` characters."""
    return ceil(clone.decisions / clone.worlds) * clone.worlds


def count_simulated(cfg: HlcConfig) -> int:
    """The control steps that planning and executing these decisions takes."""
    plan = cfg.plan
    tried = plan.iterations * plan.candidates * plan.horizon
    return count_planned(cfg.clone) * (tried + cfg.llc_steps)


def collect_labels(cfg: HlcConfig, parent: Parent) -> Labels:
    """`count_planned` decisions of a planner, which are executed."""
    streams = [Generator().manual_seed(cfg.seed + SEED + i) for i in range(2)]
    worlds = cfg.clone.worlds
    env = make_worlds(cfg, parent, worlds, starts=streams[0], goals=streams[1])
    planner = make_planner(parent, cfg, worlds, seed=cfg.seed)
    observations: list[Batch] = []
    chosen: list[Tensor] = []
    rewards: list[Tensor] = []
    for _ in range(count_planned(cfg.clone) // worlds):
        observations.append(env.observe())
        z = torch.from_numpy(planner(env.env.state().flatten().numpy(), env.goals.goal.numpy()))
        step = env.step(z)
        chosen.append(z)
        rewards.append(step.reward)
        ended = (step.terminated | step.truncated).nonzero()[:, 0]
        env.reset(ended)
        planner.reset_plans(ended)
    obs = {name: torch.cat([row[name] for row in observations]) for name in observations[0]}
    return Labels(obs, torch.cat(chosen), float(torch.cat(rewards).mean()))


def fit(policy: GaussianPolicy, labels: Labels, cfg: HlcConfig, rng: Generator) -> float:
    """Regress the policy's mean on the labels. Returns the mean cosine between them over the last
    tenth of the labels, which is held out."""
    n = len(labels.z)
    held_out = max(1, n // 10)
    fitted = max(1, n - held_out)
    optimizer = Adam(policy.parameters(), cfg.clone.lr)
    for _ in range(cfg.clone.epochs):
        for rows in torch.randperm(fitted, generator=rng).split(cfg.clone.minibatch):
            mean = policy({name: x[rows] for name, x in labels.obs.items()})
            loss = nn.functional.mse_loss(mean, labels.z[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        mean = policy({name: x[-held_out:] for name, x in labels.obs.items()})
    return float((on_sphere(mean) * labels.z[-held_out:]).sum(-1).mean())


def clone_planner(cfg: HlcConfig, parent: Parent, nets: ControllerNets) -> None:
    """Collect `clone.decisions` labels, fit the policy and print the result."""
    began = time.monotonic()
    labels = collect_labels(cfg, parent)
    collected = time.monotonic()
    rng = Generator().manual_seed(cfg.seed + SEED + 2)
    cosine = fit(nets.policy, labels, cfg, rng)
    seconds = f"{collected - began:.0f} s, fitted in {time.monotonic() - collected:.0f} s"
    print(
        f"{len(labels.z):,} planned decisions in {seconds}: task reward {labels.reward:.3f}, "
        f"cosine {cosine:.2f} on those held out",
        flush=True,
    )
