"""MimicKit `model.pt`: z goes straight into the actor, the encoder is separate, and the action
normalizer is the joints' range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from skills_store.checkpoints.arithmetic import Arithmetic, run_hidden
from skills_store.checkpoints.bodies import Body
from skills_store.checkpoints.layouts import mimickit_frame, mimickit_state
from skills_store.checkpoints.network import Network, Norm, find_body
from skills_store.checkpoints.tensors import Layer, Tensors
from skills_store.checkpoints.window_nets import WindowNets, read_head

MARK = "_model._enc_out.weight"
FLOOR = 1e-4  # the least standard deviation
BOUND = 10.0  # normalized observations are clipped to +-BOUND
X = TypeVar("X")


@dataclass(frozen=True)
class Layers:
    """The networks of one checkpoint, as functions of an arithmetic."""

    obs: Norm
    joints: Norm  # middle and half-width of the action space, so its bounds are at -1 and 1
    actor: tuple[Layer, ...]
    mean_net: Layer
    windows: WindowNets

    def policy(self, on: Arithmetic[X], state: X, z: X) -> X:
        x = on.clip(on.standardize(state, self.obs.mean, self.obs.std), BOUND)
        hidden = run_hidden(on, self.actor, on.concatenate(x, on.normalize(z)))
        action = on.clip(on.linear(hidden, self.mean_net), 1.0)
        return on.scale(action, self.joints.std, self.joints.mean)


def read(tensors: Tensors) -> Network:
    obs = _read_norm(tensors, "_obs_norm")
    disc_obs = _read_norm(tensors, "_disc_obs_norm")
    joints = _read_norm(tensors, "_a_norm")
    width = len(disc_obs.mean)
    disc = read_head(tensors, "_model._disc_layers", "_model._disc_logits", width)
    enc = read_head(tensors, "_model._enc_layers", "_model._enc_out", width)
    actor = tensors.stack("_model._actor_layers", len(obs.mean) + enc.out.outputs)
    mean_net = tensors.layer("_model._action_dist._mean_net", actor[-1].outputs)
    if mean_net.outputs != len(joints.mean):
        problem = f"its actor gives {mean_net.outputs} numbers"
        raise tensors.refusal(f"{problem}, but _a_norm has {len(joints.mean)}")
    widths = (len(obs.mean), width, mean_net.outputs)
    body = find_body(tensors, *widths, (mimickit_state, mimickit_frame))
    layers = Layers(
        obs=obs,
        joints=joints,
        actor=actor,
        mean_net=mean_net,
        windows=WindowNets(disc_obs, BOUND, newest_first=False, disc=disc, enc=enc),
    )
    return _make_network(layers, body)


def _make_network(layers: Layers, body: Body) -> Network:
    windows = layers.windows
    return Network(
        peer="mimickit",
        body=body,
        state=mimickit_state(body),
        frame=mimickit_frame(body),
        latent=windows.enc.out.outputs,
        offset=layers.joints.mean,
        scale=layers.joints.std,
        norms={"state": layers.obs, "window": windows.frame_norm()},
        policy=layers.policy,
        encoder=windows.encoder,
        style=windows.style,
    )


def _read_norm(tensors: Tensors, name: str) -> Norm:
    mean = tensors.vector(f"{name}._mean")
    std = tensors.vector(f"{name}._std")
    if len(mean) != len(std) or std.min() < 0:
        raise tensors.refusal(
            f"{name} has {len(mean)} means and {len(std)} deviations, the least {std.min():.3g}"
        )
    return Norm(mean, np.maximum(std, FLOOR))
