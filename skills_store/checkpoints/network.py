"""A peer's checkpoint as three functions, their widths, and the body that they were trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from skills_store.checkpoints.arithmetic import Arithmetic
from skills_store.checkpoints.bodies import BODIES, Body
from skills_store.checkpoints.layouts import WINDOW, Layout, width
from skills_store.checkpoints.tensors import Array, Tensors
from skills_store.graph import Slice


@dataclass(frozen=True)
class Norm:
    mean: Array
    std: Array


@dataclass(frozen=True)
class Network:
    """Each function takes an arithmetic and its values: policy(on, state, z), encoder(on, window),
    style(on, window).

    The policies first project z to the unit sphere, as the store's own do; z as the peers draw it
    is already on it.
    """

    peer: Literal["ase", "mimickit"]
    body: Body
    state: tuple[Slice, ...]
    frame: tuple[Slice, ...]
    latent: int
    offset: Array  # joint target in rad = offset + scale * clip(network, -1, 1)
    scale: Array
    norms: dict[
        str, Norm
        # Of `state` (S,) and of one `window` (W, F), oldest frame first: mean and std of the
        # training data.
    ]
    policy: Callable[[Arithmetic[Any], Any, Any], Any]
    encoder: Callable[[Arithmetic[Any], Any], Any]
    style: Callable[[Arithmetic[Any], Any], Any]


def find_body(
    tensors: Tensors, state: int, window: int, joints: int, layouts: tuple[Layout, Layout]
) -> Body:
    """The body whose observations and joints are as wide as the checkpoint's."""
    body_widths = {
        name: (width(layouts[0](body)), WINDOW * width(layouts[1](body)), len(body.hinges))
        for name, body in BODIES.items()
    }
    for name, widths in body_widths.items():
        if widths == (state, window, joints):
            return BODIES[name]
    listed = "; ".join(f"{name} {s}, {w} and {j}" for name, (s, w, j) in body_widths.items())
    raise tensors.refusal(
        f"its observation, window and action are {state}, {window} and {joints} wide, "
        f"and those of no body known here: {listed}"
    )
