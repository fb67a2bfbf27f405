"""The controller's two networks and their observation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from hlc.config import ControllerPPOConfig
from hlc.tasks.task import Task
from pretrain.characters.state import CharacterState, unflatten
from pretrain.motion.library import MotionLibrary
from pretrain.rl.nets import (
    GaussianPolicy,
    Inputs,
    Value,
    make_fixed_normalizer,
    make_unit_normalizer,
    mlp,
)
from pretrain.rl.rollout import Batch
from pretrain.sim.features import proprioception


def observation(task: Task, state: CharacterState, goal: Tensor) -> Batch:
    """Observation of omega(z|s,g) for state (N, ...) and world goal (N, G), in training and in the
    exported graph."""
    return {"obs": proprioception(state), "goal": task.features(state, goal)}


@dataclass(frozen=True)
class ControllerNets:
    """omega(z|s,g), whose mean is projected to the sphere where it is used, and V(s,g)."""

    policy: GaussianPolicy
    value: Value

    def modules(self) -> dict[str, nn.Module]:
        return {"policy": self.policy, "value": self.value}


def make_nets(
    cfg: ControllerPPOConfig, task: Task, clips: MotionLibrary, latent_dim: int, rng: Generator
) -> ControllerNets:
    """Fresh networks. The proprioception's normalizer is fixed by the clips; goals, in meters, need
    none."""
    states = unflatten(clips.frames)
    # A drawn goal gives the width of the features.
    example = observation(task, states, task.draw(states, torch.Generator().manual_seed(0)))
    obs = make_fixed_normalizer(example["obs"])
    goal = make_unit_normalizer(example["goal"].shape[-1])
    width = sum(x.shape[-1] for x in example.values())

    def inputs() -> Inputs:
        return Inputs({"obs": obs, "goal": goal})

    body = mlp([width, *cfg.hidden, latent_dim], last_scale=0.1, rng=rng)
    return ControllerNets(
        policy=GaussianPolicy(inputs(), body, cfg.action_std),
        value=Value(inputs(), mlp([width, *cfg.hidden, 1], rng=rng)),
    )
