"""WindowNets: a peer's discriminator and encoder, whose input is the same normalized window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from skills_store.checkpoints.arithmetic import Arithmetic, run_hidden
from skills_store.checkpoints.layouts import WINDOW
from skills_store.checkpoints.network import Norm
from skills_store.checkpoints.tensors import Layer, Tensors

X = TypeVar("X")


@dataclass(frozen=True)
class Head:
    """Hidden layers with ReLU, and a linear one after them."""

    hidden: tuple[Layer, ...]
    out: Layer

    def run(self, on: Arithmetic[X], x: X) -> X:
        return on.linear(run_hidden(on, self.hidden, x), self.out)


@dataclass(frozen=True)
class WindowNets:
    norm: Norm  # of a window, flat, in the peer's order of frames
    bound: float  # normalized observations are clipped to +-bound
    newest_first: bool  # the peer's order; a window of the store begins with the oldest frame
    disc: Head
    enc: Head

    def encoder(self, on: Arithmetic[X], window: X) -> X:
        return on.normalize(self.enc.run(on, self._observe(on, window)))

    def style(self, on: Arithmetic[X], window: X) -> X:
        return on.squeeze_column(on.sigmoid(self.disc.run(on, self._observe(on, window))))

    def frame_norm(self) -> Norm:
        """`norm` as (WINDOW, D), the oldest frame first."""
        frames = [x.reshape(WINDOW, -1) for x in (self.norm.mean, self.norm.std)]
        return Norm(*(x[::-1] if self.newest_first else x for x in frames))

    def _observe(self, on: Arithmetic[X], window: X) -> X:
        flat = on.flatten(on.reverse_time(window) if self.newest_first else window)
        return on.clip(on.standardize(flat, self.norm.mean, self.norm.std), self.bound)


def read_head(tensors: Tensors, mlp: str, out: str, inputs: int) -> Head:
    """The layers with these names; CheckpointRefusal where they are missing or do not fit."""
    hidden = tensors.stack(mlp, inputs)
    return Head(hidden, tensors.layer(out, hidden[-1].outputs))
