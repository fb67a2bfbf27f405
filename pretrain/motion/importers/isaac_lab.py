"""Isaac Lab's AMP .npz: positions and rotations of 15 bodies in the world, wxyz, z up.

The zero pose has hanging arms. Every pose is stored twice, labeled with twice the rate: every
second frame is kept, with a warning. Two arrays are not read: the dof columns, which are components
of rotation vectors, not hinge angles, and the velocities, which are smoothed or 0. (isaaclab 2.3.2,
direct/humanoid_amp/motions.)"""

from __future__ import annotations

import numpy as np

from pretrain.characters.rotations import conjugate, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.importers.archives import entry_names, read_arrays
from pretrain.motion.importers.humanoid_frames import (
    check_bones,
    check_numbers,
    check_rate,
    unit_quaternions,
)
from pretrain.motion.importers.poselib import against_parents, clip_of

KEYS = ("fps", "body_names", "body_positions", "body_rotations")


def recognize(data: bytes) -> bool:
    """Whether `data` is an .npz of these arrays."""
    return entry_names(data) >= set(KEYS)


def read(data: bytes, name: str, skeleton: Skeleton) -> MotionClip:
    """ClipError names the frame and body that is wrong."""
    arrays = read_arrays(data, name, KEYS)
    bodies = _bodies(arrays["body_names"], name)
    positions = arrays["body_positions"]
    rotations = arrays["body_rotations"]
    count = len(positions) if positions.ndim else 0
    for key, width in (("body_positions", 3), ("body_rotations", 4)):
        if arrays[key].shape != (count, len(bodies), width):
            expected = (count, len(bodies), width)
            raise ClipError(f"{name}: {key} has shape {arrays[key].shape}, expected {expected}")
    rate = check_rate(arrays["fps"], count, name)
    positions = check_numbers(positions, f"{name}: body_positions", bodies)
    rotations = check_numbers(rotations, f"{name}: body_rotations", bodies)
    rotations = unit_quaternions(rotations, name, bodies)
    if missing := sorted(set(skeleton.bodies) - set(bodies)):
        there = ", ".join(bodies)[:300]
        raise ClipError(f"{name}: no body {', '.join(missing)[:200]}; it has {there}")
    ours = [bodies.index(body) for body in skeleton.bodies]
    local = against_parents(rotations[:, ours], skeleton.parents)
    bones = _first_bones(positions[0, ours], rotations[0, ours], skeleton)
    check_bones(bones, skeleton, f"{name}: frame 0")
    turns = dict(zip(skeleton.bodies, np.moveaxis(local, 1, 0), strict=True))
    return clip_of(name, rate, positions[:, ours[0]], turns, skeleton)


def _bodies(names: np.ndarray, name: str) -> tuple[str, ...]:
    if names.dtype.kind not in "US" or names.ndim != 1:
        raise ClipError(f"{name}: body_names holds {names.dtype} {names.shape}, expected names")
    return tuple(names.astype(str).tolist())


def _first_bones(
    positions: np.ndarray,
    rotations: np.ndarray,
    skeleton: Skeleton,
) -> dict[str, np.ndarray]:
    """Vectors from each body's parent to it in the parent's axes, from (B, 3) and (B, 4)."""
    parents = np.array(skeleton.parents[1:])
    gaps = positions[1:] - positions[parents]
    local = rotate(conjugate(rotations[parents]), gaps)
    return dict(zip(skeleton.bodies[1:], local, strict=True))
