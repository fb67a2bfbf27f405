"""MimicKit `model.pt`: z straight into the actor, an encoder of its own, and an action normalizer
that is the joints' range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from skills_store.checkpoints.arithmetic import Arithmetic, run_hidden
from skills_store.checkpoints.bodies import Body
from skills_store.checkpoints.layouts import WINDOW, mimickit_frame, mimickit_state
from skills_store.checkpoints.network import Network, Norm, find_body
from skills_store.checkpoints.tensors import Layer, Tensors

MARK = "_model._enc_out.weight"
FLOOR = 1e-4  # no standard deviation is less
BOUND = 10.0  # a normalized observation lies within
X = TypeVar("X")


@dataclass(frozen=True)
class Layers:
    """The networks of one checkpoint, as functions of an arithmetic."""

    obs: Norm
    disc_obs: Norm
    joints: Norm  # middle and half-width of the action space, so its bounds are at -1 and 1
    actor: tuple[Layer, ...]
    mean_net: Layer
    disc_layers: tuple[Layer, ...]
    disc_logits: Layer
    enc_layers: tuple[Layer, ...]
    enc: Layer

    def policy(self, on: Arithmetic[X], state: X, z: X) -> X:
        x = on.clip(on.standardize(state, self.obs.mean, self.obs.std), BOUND)
        hidden = run_hidden(on, self.actor, on.concatenate(x, on.normalize(z)))
        action = on.clip(on.linear(hidden, self.mean_net), 1.0)
        return on.scale(action, self.joints.std, self.joints.mean)

    def encoder(self, on: Arithmetic[X], window: X) -> X:
        hidden = run_hidden(on, self.enc_layers, self._features(on, window))
        return on.normalize(on.linear(hidden, self.enc))

    def style(self, on: Arithmetic[X], window: X) -> X:
        hidden = run_hidden(on, self.disc_layers, self._features(on, window))
        return on.squeeze_column(on.sigmoid(on.linear(hidden, self.disc_logits)))

    def _features(self, on: Arithmetic[X], window: X) -> X:
        flat = on.flatten(window)
        return on.clip(on.standardize(flat, self.disc_obs.mean, self.disc_obs.std), BOUND)


def read(tensors: Tensors) -> Network:
    obs = _read_norm(tensors, "_obs_norm")
    disc_obs = _read_norm(tensors, "_disc_obs_norm")
    joints = _read_norm(tensors, "_a_norm")
    disc_layers = tensors.stack("_model._disc_layers", len(disc_obs.mean))
    enc_layers = tensors.stack("_model._enc_layers", len(disc_obs.mean))
    disc_logits = tensors.layer("_model._disc_logits", disc_layers[-1].outputs)
    enc = tensors.layer("_model._enc_out", enc_layers[-1].outputs)
    actor = tensors.stack("_model._actor_layers", len(obs.mean) + enc.outputs)
    mean_net = tensors.layer("_model._action_dist._mean_net", actor[-1].outputs)
    if mean_net.outputs != len(joints.mean):
        found = f"its actor gives {mean_net.outputs} numbers"
        raise tensors.refusal(f"{found}, but _a_norm has {len(joints.mean)}")
    widths = (len(obs.mean), len(disc_obs.mean), mean_net.outputs)
    body = find_body(tensors, *widths, (mimickit_state, mimickit_frame))
    layers = Layers(
        obs=obs,
        disc_obs=disc_obs,
        joints=joints,
        actor=actor,
        mean_net=mean_net,
        disc_layers=disc_layers,
        disc_logits=disc_logits,
        enc_layers=enc_layers,
        enc=enc,
    )
    return _make_network(layers, body)


def _make_network(layers: Layers, body: Body) -> Network:
    disc_obs = layers.disc_obs
    frames = Norm(*(x.reshape(WINDOW, -1) for x in (disc_obs.mean, disc_obs.std)))
    return Network(
        peer="mimickit",
        body=body,
        state=mimickit_state(body),
        frame=mimickit_frame(body),
        latent=layers.enc.outputs,
        offset=layers.joints.mean,
        scale=layers.joints.std,
        norms={"state": layers.obs, "window": frames},
        policy=layers.policy,
        encoder=layers.encoder,
        style=layers.style,
    )


def _read_norm(tensors: Tensors, name: str) -> Norm:
    mean = tensors.vector(f"{name}._mean")
    std = tensors.vector(f"{name}._std")
    if len(mean) != len(std) or std.min() < 0:
        raise tensors.refusal(
            f"{name} has {len(mean)} means and {len(std)} deviations, the least {std.min():.3g}"
        )
    return Norm(mean, np.maximum(std, FLOOR))
