"""MimicKit `model.pt`: z straight into the actor, an encoder of its own, and an action normalizer that is the joints' range."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from skills_store.checkpoints.arithmetic import Arithmetic, run_hidden
from skills_store.checkpoints.layouts import WINDOW, mimickit_frame, mimickit_state
from skills_store.checkpoints.network import Network, Norm, find_body
from skills_store.checkpoints.tensors import Tensors

MARK = "_model._enc_out.weight"
FLOOR = 1e-4  # no standard deviation is less
BOUND = 10.0  # a normalized observation lies within
X = TypeVar("X")


def read(tensors: Tensors) -> Network:
    obs, seen, joints = (_read_norm(tensors, name) for name in ("_obs_norm", "_disc_obs_norm", "_a_norm"))
    disc_layers, enc_layers = (
        tensors.stack(f"_model.{name}", len(seen.mean)) for name in ("_disc_layers", "_enc_layers")
    )
    logits = tensors.layer("_model._disc_logits", disc_layers[-1].outputs)
    enc = tensors.layer("_model._enc_out", enc_layers[-1].outputs)
    actor = tensors.stack("_model._actor_layers", len(obs.mean) + enc.outputs)
    mean_net = tensors.layer("_model._action_dist._mean_net", actor[-1].outputs)
    if mean_net.outputs != len(joints.mean):
        raise tensors.refusal(f"its actor gives {mean_net.outputs} numbers, but _a_norm has {len(joints.mean)}")
    body = find_body(tensors, len(obs.mean), len(seen.mean), mean_net.outputs, (mimickit_state, mimickit_frame))

    def policy(on: Arithmetic[X], state: X, z: X) -> X:
        x = on.clip(on.standardize(state, obs.mean, obs.std), BOUND)
        action = on.linear(run_hidden(on, actor, on.concatenate(x, on.normalize(z))), mean_net)
        # The normalizer is fixed at the middle and half-width of the action space, so its bounds are at -1 and 1.
        return on.scale(on.clip(action, 1.0), joints.std, joints.mean)

    def features(on: Arithmetic[X], window: X) -> X:
        return on.clip(on.standardize(on.flatten(window), seen.mean, seen.std), BOUND)

    def encoder(on: Arithmetic[X], window: X) -> X:
        return on.normalize(on.linear(run_hidden(on, enc_layers, features(on, window)), enc))

    def style(on: Arithmetic[X], window: X) -> X:
        return on.squeeze_column(on.sigmoid(on.linear(run_hidden(on, disc_layers, features(on, window)), logits)))

    return Network(
        peer="mimickit",
        body=body,
        state=mimickit_state(body),
        frame=mimickit_frame(body),
        latent=enc.outputs,
        offset=joints.mean,
        scale=joints.std,
        norms={"state": obs, "window": Norm(*(x.reshape(WINDOW, -1) for x in (seen.mean, seen.std)))},
        policy=policy,
        encoder=encoder,
        style=style,
    )


def _read_norm(tensors: Tensors, name: str) -> Norm:
    mean, std = tensors.vector(f"{name}._mean"), tensors.vector(f"{name}._std")
    if len(mean) != len(std) or std.min() < 0:
        raise tensors.refusal(f"{name} has {len(mean)} means and {len(std)} deviations, the least {std.min():.3g}")
    return Norm(mean, np.maximum(std, FLOOR))
