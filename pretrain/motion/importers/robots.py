"""Robots' motion files: recognized, and refused with the reason.

No character here has a robot's joints yet, and most files leave the order of quaternions or columns
open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.importers.archives import entry_names

GMR = {"root_pos", "root_rot", "dof_pos"}  # and fps; root_rot xyzw, though its qpos is wxyz
MJLAB = {"joint_pos", "joint_vel", "body_pos_w", "body_quat_w"}  # and fps, an array of 1
G1_COLUMNS = 36  # root position, quaternion, 29 hinges
SEED = ("root_translatex", "_joint_dof")  # of a header
HEAD = 4000  # bytes in which a line of numbers ends
FEWEST = 8  # columns
NO_BODY = "no character here has a robot's joints; retarget the human clip that it came from"


def refuse_pickle(document: Mapping[object, object], name: str) -> None:
    """ClipError where a pickled dict is a robot's motion by GMR."""
    if set(document) >= GMR:
        lacking = "its hinges have no names, and a BVH's rate is written as 30"
        raise ClipError(f"{name}: a robot's motion by GMR (quaternions xyzw); {lacking}; {NO_BODY}")


def recognize_arrays(data: bytes) -> bool:
    """Whether `data` is an .npz with the keys of mjlab and BeyondMimic."""
    return entry_names(data) >= MJLAB


def read_arrays(data: bytes, name: str, skeleton: Skeleton) -> MotionClip:
    """Always a ClipError."""
    del data, skeleton
    lacking = "its columns have no names: MuJoCo's order and Isaac Lab's look alike"
    raise ClipError(f"{name}: a robot's motion for mjlab or BeyondMimic; {lacking}; {NO_BODY}")


def recognize_table(data: bytes) -> bool:
    """Whether `data` begins like a robot's table of comma-separated columns."""
    line = _first_line(data)
    columns = line.split(",")
    if len(columns) < FEWEST:
        return False
    return _is_seed(line) or _are_numbers(columns)


def read_table(data: bytes, name: str, skeleton: Skeleton) -> MotionClip:
    """Always a ClipError, which names the robot where the columns identify it."""
    del skeleton
    line = _first_line(data)
    count = len(line.split(","))
    if _is_seed(line):
        units = "(cm, degrees, extrinsic xyz)"
        raise ClipError(f"{name}: a Unitree G1's motion of SEED {units}; {NO_BODY}")
    if count != G1_COLUMNS:
        raise ClipError(f"{name}: a table of {count} columns, as robots' motions are; {NO_BODY}")
    order = "its quaternions may be xyzw (Unitree) or wxyz (Kimodo, ProtoMotions)"
    raise ClipError(f"{name}: a Unitree G1's motion; {order}, nothing in it tells; {NO_BODY}")


def _first_line(data: bytes) -> str:
    return data[:HEAD].split(b"\n")[0].decode("utf-8-sig", errors="replace").strip()


def _is_seed(line: str) -> bool:
    return all(word in line.lower() for word in SEED)


def _are_numbers(columns: Iterable[str]) -> bool:
    try:
        return bool(np.isfinite([float(column) for column in columns]).all())
    except ValueError:
        return False
