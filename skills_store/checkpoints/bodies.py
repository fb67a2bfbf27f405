"""The two bodies that the peers trained: joints in order, drives, and observation widths.

A checkpoint does not name its body; its widths identify it. The numbers are those of the peers'
public models. Their MJCF has a licence of its own and is not included: pass your own copy with
--mjcf.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from skills_store.checkpoints.tensors import Array
from skills_store.manifest import Character

CONTROL_DT = 1 / 30  # s, of both peers
Range = tuple[float, float]  # degrees


@dataclass(frozen=True)
class Joint:
    """One to three hinges between two bodies, with equal drives."""

    name: str
    ranges: tuple[Range, ...]  # ASE's, one for each hinge: x, y, z
    kp: float  # N m / rad
    kd: float  # N m s / rad
    torque: float  # N m

    @property
    def hinges(self) -> tuple[str, ...]:
        return (
            (self.name,)
            if len(self.ranges) == 1
            else tuple(f"{self.name}_{axis}" for axis in "xyz")
        )


@dataclass(frozen=True)
class Body:
    name: str
    bodies: int
    joints: tuple[Joint, ...]
    ase_keys: int  # bodies whose positions are in ASE's window
    mimickit_keys: int  # bodies whose positions are in MimicKit's observations

    @property
    def hinges(self) -> tuple[str, ...]:
        return tuple(chain.from_iterable(joint.hinges for joint in self.joints))

    def character(self, mjcf: str) -> Character:
        def collect(fact: str) -> tuple[float, ...]:
            values = ([getattr(joint, fact)] * len(joint.hinges) for joint in self.joints)
            return tuple(chain.from_iterable(values))

        return Character(
            name=self.name,
            skeleton={},
            joints=self.hinges,
            kp=collect("kp"),
            kd=collect("kd"),
            damping=(0.0,) * len(self.hinges),  # the drive damps, within its torque limit
            torque_limit=collect("torque"),
            control_dt=CONTROL_DT,
            mjcf=mjcf,
        )

    def ase_action(self) -> tuple[Array, Array]:
        """Offset and scale (J,) in rad, by ASE's rule: for three hinges 1.2 times the widest limit,
        at most pi; for one, 0.7 of its range.
        """
        offset = []
        scale = []
        for joint in self.joints:
            limits = np.radians(joint.ranges)  # (hinges, 2)
            if len(limits) == 1:
                offset.append(limits.mean())
                scale.append(0.7 * (limits[0, 1] - limits[0, 0]))
            else:
                offset += [0.0] * 3
                scale += [min(1.2 * np.abs(limits).max(), np.pi)] * 3
        return np.array(offset), np.array(scale)


def _side(name: str, x: Range) -> tuple[Joint, Joint]:
    """Shoulder and elbow of one arm; `x` is the shoulder's first range, the only one that the sides
    mirror.
    """
    shoulder = Joint(f"{name}_shoulder", (x, (-180, 60), (-90, 90)), 400, 40, 100)
    return shoulder, Joint(f"{name}_elbow", ((-160, 0),), 300, 30, 70)


def _leg(name: str, x: Range, z: Range) -> tuple[Joint, Joint, Joint]:
    return (
        Joint(f"{name}_hip", (x, (-140, 60), z), 500, 50, 200),
        Joint(f"{name}_knee", ((0, 160),), 500, 50, 150),
        Joint(f"{name}_ankle", ((-30, 30), (-55, 55), (-40, 40)), 400, 40, 90),
    )


_TRUNK = (
    Joint("abdomen", ((-60, 60), (-60, 90), (-50, 50)), 1000, 100, 200),
    Joint("neck", ((-50, 50), (-40, 60), (-45, 45)), 100, 10, 50),
)
_RIGHT_ARM = _side("right", (-180, 45))
_LEFT_ARM = _side("left", (-45, 180))
_LEGS = (*_leg("right", (-60, 15), (-60, 35)), *_leg("left", (-15, 60), (-35, 60)))
_SWORD_HAND = Joint("right_hand", ((-90, 90), (-90, 90), (-90, 90)), 100, 10, 50)

BODIES = {
    "humanoid": Body(
        "humanoid", 15, (*_TRUNK, *_RIGHT_ARM, *_LEFT_ARM, *_LEGS), ase_keys=4, mimickit_keys=5
    ),
    "humanoid_sword_shield": Body(
        "humanoid_sword_shield",
        17,
        (*_TRUNK, *_RIGHT_ARM, _SWORD_HAND, *_LEFT_ARM, *_LEGS),
        ase_keys=6,
        mimickit_keys=6,
    ),
}
