"""nv-tlabs/ASE `.pth`: style MLP in front of the actor, encoder on the discriminator's trunk,
running mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from skills_store.checkpoints.arithmetic import Arithmetic, run_hidden
from skills_store.checkpoints.bodies import Body
from skills_store.checkpoints.layouts import WINDOW, ase_frame, ase_state
from skills_store.checkpoints.network import Network, Norm, find_body
from skills_store.checkpoints.tensors import Array, Layer, Tensors

MARK = "model.a2c_network.actor_mlp._style_dense.weight"
NET = "model.a2c_network"
EPSILON = 1e-5  # added to the variance
BOUND = 5.0  # a normalized observation lies within
X = TypeVar("X")


@dataclass(frozen=True)
class Layers:
    """The networks of one checkpoint, as functions of an arithmetic."""

    obs: Norm
    disc_obs: Norm
    style_mlp: tuple[Layer, ...]
    style_dense: Layer
    dense: tuple[Layer, ...]
    mu: Layer
    disc_mlp: tuple[Layer, ...]
    disc_logits: Layer
    enc_mlp: tuple[Layer, ...]
    enc: Layer
    offset: Array
    scale: Array

    def policy(self, on: Arithmetic[X], state: X, z: X) -> X:
        style = run_hidden(on, self.style_mlp, on.normalize(z))
        style = on.tanh(on.linear(style, self.style_dense))
        x = on.clip(on.standardize(state, self.obs.mean, self.obs.std), BOUND)
        action = on.linear(run_hidden(on, self.dense, on.concatenate(x, style)), self.mu)
        return on.scale(on.clip(action, 1.0), self.scale, self.offset)

    def encoder(self, on: Arithmetic[X], window: X) -> X:
        hidden = run_hidden(on, self.enc_mlp, self._features(on, window))
        return on.normalize(on.linear(hidden, self.enc))

    def style(self, on: Arithmetic[X], window: X) -> X:
        hidden = run_hidden(on, self.disc_mlp, self._features(on, window))
        return on.squeeze_column(on.sigmoid(on.linear(hidden, self.disc_logits)))

    def _features(self, on: Arithmetic[X], window: X) -> X:
        """ASE's history begins with the newest frame; a window of the store with the oldest."""
        flat = on.flatten(on.reverse_time(window))
        return on.clip(on.standardize(flat, self.disc_obs.mean, self.disc_obs.std), BOUND)


def read(tensors: Tensors) -> Network:
    obs = _read_norm(tensors, "running_mean_std")
    disc_obs = _read_norm(tensors, "amp_input_mean_std")
    actor = f"{NET}.actor_mlp"
    latent = tensors.inputs(f"{actor}._style_mlp.0")
    style_mlp = tensors.stack(f"{actor}._style_mlp", latent)
    style_dense = tensors.layer(f"{actor}._style_dense", style_mlp[-1].outputs)
    dense_inputs = len(obs.mean) + style_dense.outputs
    dense = tensors.stack(f"{actor}._dense_layers", dense_inputs, step=1)
    mu = tensors.layer(f"{NET}.mu", dense[-1].outputs)
    disc_mlp, disc_logits = _read_head(tensors, "_disc_mlp", "_disc_logits", len(disc_obs.mean))
    enc_mlp, enc = _read_head(tensors, "_enc_mlp", "_enc", len(disc_obs.mean))
    if enc.outputs != latent:
        found = f"its encoder gives {enc.outputs} numbers"
        raise tensors.refusal(f"{found}, but its actor takes a z of {latent}")
    widths = (len(obs.mean), len(disc_obs.mean), mu.outputs)
    body = find_body(tensors, *widths, (ase_state, ase_frame))
    offset, scale = body.ase_action()
    layers = Layers(
        obs=obs,
        disc_obs=disc_obs,
        style_mlp=style_mlp,
        style_dense=style_dense,
        dense=dense,
        mu=mu,
        disc_mlp=disc_mlp,
        disc_logits=disc_logits,
        enc_mlp=enc_mlp,
        enc=enc,
        offset=offset,
        scale=scale,
    )
    return _make_network(layers, body)


def _read_head(
    tensors: Tensors, mlp: str, out: str, inputs: int
) -> tuple[tuple[Layer, ...], Layer]:
    """Hidden layers, and the linear one after them."""
    hidden = tensors.stack(f"{NET}.{mlp}", inputs)
    return hidden, tensors.layer(f"{NET}.{out}", hidden[-1].outputs)


def _make_network(layers: Layers, body: Body) -> Network:
    disc_obs = layers.disc_obs
    frames = Norm(*(x.reshape(WINDOW, -1)[::-1] for x in (disc_obs.mean, disc_obs.std)))
    return Network(
        peer="ase",
        body=body,
        state=ase_state(body),
        frame=ase_frame(body),
        latent=layers.enc.outputs,
        offset=layers.offset,
        scale=layers.scale,
        norms={"state": layers.obs, "window": frames},
        policy=layers.policy,
        encoder=layers.encoder,
        style=layers.style,
    )


def _read_norm(tensors: Tensors, name: str) -> Norm:
    mean = tensors.vector(f"{name}.running_mean")
    variance = tensors.vector(f"{name}.running_var")
    if len(mean) != len(variance) or variance.min() < 0:
        raise tensors.refusal(
            f"{name} has {len(mean)} means and {len(variance)} variances, "
            f"the least {variance.min():.3g}"
        )
    return Norm(mean, np.sqrt(variance + EPSILON))
