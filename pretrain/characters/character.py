"""Character: a body for the simulator. Sizes, limits and gains are read from the compiled MJCF."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from pretrain.characters.box import Box
from pretrain.characters.mujoco_bindings import mujoco
from pretrain.characters.skeleton import Joint, Skeleton

ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class Character:
    """Frozen specification of a body.

    Torque at a hinge = clip(kp (target - q) - kd q', +-torque_limit) - damping q', as in the MJCF.
    """

    name: str
    mjcf: str  # the XML text
    skeleton: Skeleton
    kp: tuple[float, ...]  # N m / rad, per hinge
    kd: tuple[float, ...]  # N m s / rad, per hinge, of the drive
    damping: tuple[float, ...]  # N m s / rad, per hinge, passive
    torque_limit: tuple[float, ...]  # N m, per hinge
    control_dt: float = 1 / 30  # s, a whole number of the MJCF's timesteps
    box: Box | None = None  # a free body beside it, not in the MJCF


CHARACTERS = {
    "humanoid": (
        "humanoid.xml",
        ("right_foot", "left_foot"),
        ("head", "right_hand", "left_hand", "right_foot", "left_foot"),
    )
}


@cache
def load_character(name: str) -> Character:
    """The character called `name`; KeyError lists what exists. ValueError where a torque limit is
    not at its actuator."""
    if name not in CHARACTERS:
        raise KeyError(f"no character {name!r}; there are: {', '.join(CHARACTERS)}")
    file, feet, key_bodies = CHARACTERS[name]
    mjcf = (ASSETS / file).read_text(encoding="utf-8")
    model = mujoco.MjModel.from_xml_string(mjcf)
    skeleton = _read_skeleton(name, model, feet, key_bodies)
    actuated = [int(model.actuator_trnid[i, 0]) for i in range(model.nu)]
    hinges = [model.joint(hinge).id for hinge in skeleton.hinges]
    assert actuated == hinges, "the MJCF needs one position actuator per hinge, in their order"
    _check_torque_limits(name, model, hinges)
    damping = [model.dof_damping[model.jnt_dofadr[j]] for j in hinges]
    return Character(
        name=name,
        mjcf=mjcf,
        skeleton=skeleton,
        kp=tuple(map(float, model.actuator_gainprm[:, 0])),
        kd=tuple(map(float, -model.actuator_biasprm[:, 2])),
        damping=tuple(map(float, damping)),
        torque_limit=tuple(map(float, model.actuator_forcerange[:, 1])),
    )


def _check_torque_limits(name: str, model: mujoco.MjModel, hinges: list[int]) -> None:
    """A limit at the joint (`actuatorfrcrange`, a URDF's effort) would apply in simulation, but is
    missing from `actuator_force` and from the manifest. (MuJoCo 4.0.0.)"""
    for actuator, hinge in enumerate(hinges):
        if not model.actuator_forcelimited[actuator] or model.jnt_actfrclimited[hinge]:
            joint = model.joint(hinge).name
            raise ValueError(
                f"{name}: {joint} needs its torque limit as the forcerange of its actuator, and no "
                "actuatorfrcrange"
            )


def _read_skeleton(
    name: str, model: mujoco.MjModel, feet: tuple[str, ...], key_bodies: tuple[str, ...]
) -> Skeleton:
    bodies = [model.body(i).name for i in range(1, model.nbody)]  # body 0 is the world
    joints: list[Joint] = []
    start = 0
    for i in range(1, model.nbody):
        ids = range(model.body_jntadr[i], model.body_jntadr[i] + model.body_jntnum[i])
        hinges = [j for j in ids if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE]
        if hinges:
            names = tuple(model.joint(j).name for j in hinges)
            if len(hinges) not in (1, 3):
                raise ValueError(f"{bodies[i - 1]} has {len(hinges)} hinges, expected 1 or 3")
            axes = "".join(
                _read_axis(hinge, model.jnt_axis[j]) for hinge, j in zip(names, hinges, strict=True)
            )
            joints.append(Joint(bodies[i - 1], names, axes, start))
            start += len(hinges)
    offsets = ((float(x), float(y), float(z)) for x, y, z in model.body_pos[2:])
    first = 1  # joint 0 is the root's free joint
    return Skeleton(
        name=name,
        bodies=tuple(bodies),
        parents=tuple(int(p) - 1 for p in model.body_parentid[1:]),
        offsets=((0.0, 0.0, 0.0), *offsets),
        joints=tuple(joints),
        lower=tuple(map(float, model.jnt_range[first:, 0])),
        upper=tuple(map(float, model.jnt_range[first:, 1])),
        feet=feet,
        key_bodies=key_bodies,
        surface=tuple(_read_surface(model)),
    )


def _read_axis(hinge: str, axis: np.ndarray) -> str:
    """x, y or z. Raises ValueError for any other axis, a negative one included."""
    for name, unit in zip("xyz", np.eye(3), strict=True):
        if np.allclose(axis, unit):
            return name
    raise ValueError(f"hinge {hinge} has the axis {axis.tolist()}, expected x, y or z")


def _read_surface(model: mujoco.MjModel) -> list[tuple[int, float, float, float, float]]:
    """Spheres whose lowest point is the body's lowest point: sphere centers, capsule ends, box
    corners."""
    spheres: list[tuple[int, float, float, float, float]] = []
    for g in range(model.ngeom):
        body = int(model.geom_bodyid[g]) - 1
        if body < 0:
            continue
        kind = model.geom_type[g]
        size = model.geom_size[g]
        center = model.geom_pos[g]
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, model.geom_quat[g])
        ends = [np.zeros(3)]
        radius = float(size[0])
        if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
            ends = [np.array([0, 0, s * size[1]]) for s in (-1, 1)]
        elif kind == mujoco.mjtGeom.mjGEOM_BOX:
            ends = [size * np.array([a, b, c]) for a, b, c in product((-1, 1), repeat=3)]
            radius = 0.0
        elif kind != mujoco.mjtGeom.mjGEOM_SPHERE:
            name = mujoco.mjtGeom(kind).name
            raise ValueError(f"geom {g} is a {name}, expected a sphere, a capsule or a box")
        for end in ends:
            x, y, z = map(float, center + rotation.reshape(3, 3) @ end)
            spheres.append((body, x, y, z, radius))
    return spheres
