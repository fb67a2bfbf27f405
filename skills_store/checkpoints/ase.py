"""nv-tlabs/ASE `.pth`: style MLP in front of the actor, encoder on the discriminator's trunk,
running mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from skills_store.checkpoints.arithmetic import Arithmetic, run_hidden
from skills_store.checkpoints.bodies import Body
from skills_store.checkpoints.layouts import ase_frame, ase_state
from skills_store.checkpoints.network import Network, Norm, find_body
from skills_store.checkpoints.tensors import Array, Layer, Tensors
from skills_store.checkpoints.window_nets import WindowNets, read_head

MARK = "model.a2c_network.actor_mlp._style_dense.weight"
NET = "model.a2c_network"
EPSILON = 1e-5  # added to the variance
BOUND = 5.0  # normalized observations are clipped to +-BOUND
X = TypeVar("X")


@dataclass(frozen=True)
class Layers:
    """The networks of one checkpoint, as functions of an arithmetic."""

    obs: Norm
    style_mlp: tuple[Layer, ...]
    style_dense: Layer
    dense: tuple[Layer, ...]
    mu: Layer
    windows: WindowNets
    offset: Array
    scale: Array

    def policy(self, on: Arithmetic[X], state: X, z: X) -> X:
        style = run_hidden(on, self.style_mlp, on.normalize(z))
        style = on.tanh(on.linear(style, self.style_dense))
        x = on.clip(on.standardize(state, self.obs.mean, self.obs.std), BOUND)
        action = on.linear(run_hidden(on, self.dense, on.concatenate(x, style)), self.mu)
        return on.scale(on.clip(action, 1.0), self.scale, self.offset)


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
    width = len(disc_obs.mean)
    disc = read_head(tensors, f"{NET}._disc_mlp", f"{NET}._disc_logits", width)
    enc = read_head(tensors, f"{NET}._enc_mlp", f"{NET}._enc", width)
    if enc.out.outputs != latent:
        problem = f"its encoder gives {enc.out.outputs} numbers"
        raise tensors.refusal(f"{problem}, but its actor takes a z of {latent}")
    widths = (len(obs.mean), width, mu.outputs)
    body = find_body(tensors, *widths, (ase_state, ase_frame))
    offset, scale = body.ase_action()
    layers = Layers(
        obs=obs,
        style_mlp=style_mlp,
        style_dense=style_dense,
        dense=dense,
        mu=mu,
        windows=WindowNets(disc_obs, BOUND, newest_first=True, disc=disc, enc=enc),
        offset=offset,
        scale=scale,
    )
    return _make_network(layers, body)


def _make_network(layers: Layers, body: Body) -> Network:
    windows = layers.windows
    return Network(
        peer="ase",
        body=body,
        state=ase_state(body),
        frame=ase_frame(body),
        latent=windows.enc.out.outputs,
        offset=layers.offset,
        scale=layers.scale,
        norms={"state": layers.obs, "window": windows.frame_norm()},
        policy=layers.policy,
        encoder=windows.encoder,
        style=windows.style,
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
