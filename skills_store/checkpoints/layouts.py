"""The inputs of the peers' networks, number by number: the slices that a client must fill to use an
imported library.

`tan_norm` is a rotation as its x axis and its z axis, 3 + 3 numbers. `heading` is the frame of the
root's yaw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from skills_store.checkpoints.bodies import Body
from skills_store.graph import Slice

WINDOW = 10  # frames, of both peers


class Part(NamedTuple):
    name: str
    width: int
    unit: str
    frame: str


def ase_state(body: Body) -> tuple[Slice, ...]:
    """15 B - 2 numbers. The root's rotation is global, as a flag in every published configuration
    of ASE sets it.
    """
    others = body.bodies - 1
    return _tile(
        Part("root_height", 1, "m", "world"),
        Part("body_pos", 3 * others, "m", "heading, from the root"),
        Part("root_rot", 6, "tan_norm", "world"),
        Part("body_rot", 6 * others, "tan_norm", "heading"),
        Part("body_vel", 3 * body.bodies, "m/s", "heading"),
        Part("body_ang_vel", 3 * body.bodies, "rad/s", "heading"),
    )


def ase_frame(body: Body) -> tuple[Slice, ...]:
    """Each frame is in its own heading frame, so the window lacks the root's travel."""
    return _tile(
        Part("root_height", 1, "m", "world"),
        Part("root_rot", 6, "tan_norm", "heading"),
        Part("root_vel", 3, "m/s", "heading"),
        Part("root_ang_vel", 3, "rad/s", "heading"),
        Part("joint_rot", 6 * len(body.joints), "tan_norm", "parent"),
        Part("joint_vel", len(body.hinges), "rad/s", "joint"),
        Part("key_pos", 3 * body.ase_keys, "m", "heading, from the root"),
    )


def mimickit_state(body: Body) -> tuple[Slice, ...]:
    return _tile(
        Part("root_height", 1, "m", "world"),
        Part("root_rot", 6, "tan_norm", "heading"),
        Part("root_vel", 3, "m/s", "heading"),
        Part("root_ang_vel", 3, "rad/s", "heading"),
        Part("body_rot", 6 * (body.bodies - 1), "tan_norm", "parent"),
        Part("joint_vel", len(body.hinges), "rad/s", "joint"),
        Part("key_pos", 3 * body.mimickit_keys, "m", "heading, from the root"),
    )


def mimickit_frame(body: Body) -> tuple[Slice, ...]:
    """All frames are in the heading frame of the last: overlapping windows share no frame."""
    latest = "heading of the last frame"
    return _tile(
        Part("root_pos", 3, "m", f"{latest}, xy from its root"),
        Part("root_rot", 6, "tan_norm", latest),
        Part("body_rot", 6 * (body.bodies - 1), "tan_norm", "parent"),
        Part("key_pos", 3 * body.mimickit_keys, "m", f"{latest}, from the root"),
        Part("root_vel", 3, "m/s", latest),
        Part("root_ang_vel", 3, "rad/s", latest),
        Part("joint_vel", len(body.hinges), "rad/s", "joint"),
    )


Layout = Callable[[Body], tuple[Slice, ...]]


def width(slices: tuple[Slice, ...]) -> int:
    return slices[-1].stop


def _tile(*parts: Part) -> tuple[Slice, ...]:
    start = 0
    slices = []
    for part in parts:
        stop = start + part.width
        slices.append(
            Slice(name=part.name, start=start, stop=stop, unit=part.unit, frame=part.frame)
        )
        start = stop
    return tuple(slices)
