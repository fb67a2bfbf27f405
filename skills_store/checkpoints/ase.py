"""nv-tlabs/ASE `.pth`: style MLP in front of the actor, encoder on the discriminator's trunk, running mean and variance."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from skills_store.checkpoints.arithmetic import Arithmetic, run_hidden
from skills_store.checkpoints.layouts import WINDOW, ase_frame, ase_state
from skills_store.checkpoints.network import Network, Norm, find_body
from skills_store.checkpoints.tensors import Tensors

MARK = "model.a2c_network.actor_mlp._style_dense.weight"
NET = "model.a2c_network"
EPSILON = 1e-5  # added to the variance
BOUND = 5.0  # a normalized observation lies within
X = TypeVar("X")


def read(tensors: Tensors) -> Network:
    obs, seen = _read_norm(tensors, "running_mean_std"), _read_norm(tensors, "amp_input_mean_std")
    actor = f"{NET}.actor_mlp"
    latent = tensors.inputs(f"{actor}._style_mlp.0")
    style_mlp = tensors.stack(f"{actor}._style_mlp", latent)
    style_dense = tensors.layer(f"{actor}._style_dense", style_mlp[-1].outputs)
    dense = tensors.stack(f"{actor}._dense_layers", len(obs.mean) + style_dense.outputs, step=1)
    mu = tensors.layer(f"{NET}.mu", dense[-1].outputs)
    disc_mlp, enc_mlp = (tensors.stack(f"{NET}.{name}", len(seen.mean)) for name in ("_disc_mlp", "_enc_mlp"))
    logits = tensors.layer(f"{NET}._disc_logits", disc_mlp[-1].outputs)
    enc = tensors.layer(f"{NET}._enc", enc_mlp[-1].outputs)
    if enc.outputs != latent:
        raise tensors.refusal(f"its encoder gives {enc.outputs} numbers, but its actor takes a z of {latent}")
    body = find_body(tensors, len(obs.mean), len(seen.mean), mu.outputs, (ase_state, ase_frame))
    offset, scale = body.ase_action()

    def policy(on: Arithmetic[X], state: X, z: X) -> X:
        style = on.tanh(on.linear(run_hidden(on, style_mlp, on.normalize(z)), style_dense))
        x = on.clip(on.standardize(state, obs.mean, obs.std), BOUND)
        action = on.linear(run_hidden(on, dense, on.concatenate(x, style)), mu)
        return on.scale(on.clip(action, 1.0), scale, offset)

    def features(on: Arithmetic[X], window: X) -> X:
        """ASE's history begins with the newest frame; a window of the store with the oldest."""
        return on.clip(on.standardize(on.flatten(on.reverse_time(window)), seen.mean, seen.std), BOUND)

    def encoder(on: Arithmetic[X], window: X) -> X:
        return on.normalize(on.linear(run_hidden(on, enc_mlp, features(on, window)), enc))

    def style(on: Arithmetic[X], window: X) -> X:
        return on.squeeze_column(on.sigmoid(on.linear(run_hidden(on, disc_mlp, features(on, window)), logits)))

    frames = Norm(*(x.reshape(WINDOW, -1)[::-1] for x in (seen.mean, seen.std)))
    return Network(
        peer="ase",
        body=body,
        state=ase_state(body),
        frame=ase_frame(body),
        latent=latent,
        offset=offset,
        scale=scale,
        norms={"state": obs, "window": frames},
        policy=policy,
        encoder=encoder,
        style=style,
    )


def _read_norm(tensors: Tensors, name: str) -> Norm:
    mean, variance = tensors.vector(f"{name}.running_mean"), tensors.vector(f"{name}.running_var")
    if len(mean) != len(variance) or variance.min() < 0:
        raise tensors.refusal(
            f"{name} has {len(mean)} means and {len(variance)} variances, the least {variance.min():.3g}"
        )
    return Norm(mean, np.sqrt(variance + EPSILON))
