"""MimicKit's .pkl: a pickled dict of loop_mode, fps and frames, (T, 34) numbers.

A frame: root position, then rotation vectors of the root and of ball joints and angles of hinges,
in the order of COLUMNS; 37 numbers where the right hand turns as well (sword and shield). World z
up, x forward, zero pose with spread arms; the bones are ours. `frames` is a list of lists (2026) or
an array (2025), and fps a whole number or not. (MimicKit, Peng 2025, anim/motion.py.)
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from pretrain.characters.rotations import from_axis_angle
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.importers import robots
from pretrain.motion.importers.humanoid_frames import (
    MAX_FRAMES,
    HumanoidFrames,
    check_numbers,
    check_rate,
    make_clip,
)
from pretrain.motion.importers.pickled_arrays import value_of
from pretrain.motion.importers.pickles import is_pickle, load

HINGES = {"right_lower_arm": "z", "left_lower_arm": "z", "right_shin": "y", "left_shin": "y"}
ROOT = "root"
HAND = "right_hand"
COLUMNS = {  # after the root's position and rotation vector: body -> numbers
    "torso": 3,
    "head": 3,
    "right_upper_arm": 3,
    "right_lower_arm": 1,
    "left_upper_arm": 3,
    "left_lower_arm": 1,
    "right_thigh": 3,
    "right_shin": 1,
    "right_foot": 3,
    "left_thigh": 3,
    "left_shin": 1,
    "left_foot": 3,
}
PLAIN = 34
WITH_HAND = 37
OTHERS = {35: "Unitree G1", 18: "Unitree Go2", 75: "SMPL humanoid", 7: "Pi Plus"}
KEYS = ("loop_mode", "fps", "frames")


def recognize(data: bytes) -> bool:
    """Whether `data` begins like a pickle; `read` reports what is missing."""
    return is_pickle(data)


def read(data: bytes, name: str, skeleton: Skeleton) -> MotionClip:
    """ClipError names the wrong frame and joint, or the robot of the file."""
    document = load(data, name)
    if not isinstance(document, dict):
        raise ClipError(f"{name}: a pickle of {type(document).__name__}, expected a dict of {KEYS}")
    robots.refuse_pickle(document, name)
    if missing := [key for key in KEYS if key not in document]:
        there = ", ".join(map(str, document))[:200]
        lacking = ", ".join(missing)
        raise ClipError(f"{name}: no {lacking}; expected MimicKit's keys, it has {there}")
    if document["loop_mode"] not in (0, 1):
        shown = str(document["loop_mode"])[:40]
        raise ClipError(f"{name}: loop_mode is {shown}, expected 0 (clamp) or 1 (wrap)")
    frames = _frames(document["frames"], name)
    rate = check_rate(value_of(document["fps"], f"{name}: fps"), len(frames), name)
    columns, labels = _columns(frames.shape[1])
    frames = check_numbers(frames, name, labels)
    warnings = ()
    if HAND in columns:
        line = f"{name}: the turn of its right hand, which holds a sword, is left out"
        warnings = (f"{line}: {skeleton.name} has no joint there",)
    return make_clip(
        HumanoidFrames(
            name=name,
            rate=rate,
            root_pos=frames[:, :3],
            root_rot=from_vector(frames[:, 3:6]),
            turns=_turns(frames, columns),
            warnings=warnings,
        ),
        skeleton,
    )


def _turns(frames: np.ndarray, columns: dict[str, slice]) -> dict[str, np.ndarray]:
    turns = {}
    for body, columns_of in columns.items():
        if body in HINGES:
            turns[body] = from_axis_angle(HINGES[body], frames[:, columns_of.start])
        elif body != HAND:
            turns[body] = from_vector(frames[:, columns_of])
    return turns


def _columns(width: int) -> tuple[dict[str, slice], tuple[str, ...]]:
    """Columns of each body, and the body of each column."""
    sizes = dict(COLUMNS)
    if width == WITH_HAND:
        sizes = {}
        for body, size in COLUMNS.items():
            sizes[body] = size
            if body == "right_lower_arm":
                sizes[HAND] = 3
    columns = {}
    labels = ["root position"] * 3 + ["root rotation"] * 3
    for body, size in sizes.items():
        columns[body] = slice(len(labels), len(labels) + size)
        labels += [body] * size
    return columns, tuple(labels)


def _frames(value: Any, name: str) -> np.ndarray:
    """(T, 34) or (T, 37), not yet checked to be finite."""
    if isinstance(value, list):
        return _from_lists(value, name)
    frames = value_of(value, f"{name}: frames")
    if not isinstance(frames, np.ndarray) or frames.ndim != 2:
        shape = getattr(frames, "shape", type(frames).__name__)
        raise ClipError(f"{name}: frames is {shape}, expected (T, {PLAIN}) or (T, {WITH_HAND})")
    _check_width(frames.shape[1], name)
    return frames


def _from_lists(rows: list[Any], name: str) -> np.ndarray:
    width = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    _check_width(width, name)
    if len(rows) > MAX_FRAMES:
        raise ClipError(f"{name}: {len(rows)} frames, expected {MAX_FRAMES} at most; cut it")
    for frame, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width:
            size = len(row) if isinstance(row, list) else type(row).__name__
            raise ClipError(f"{name}: frame {frame} has {size} numbers, expected {width}")
    kinds = set(map(type, chain.from_iterable(rows)))
    if not kinds <= {float, int}:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ClipError(f"{name}: frames hold {shown}, expected numbers")
    try:
        flat = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width)
    except OverflowError:
        entry = "a whole number of more digits than a float has"
        raise ClipError(f"{name}: frames hold {entry}") from None
    return flat.reshape(len(rows), width)


def _check_width(width: int, name: str) -> None:
    if width not in (PLAIN, WITH_HAND):
        body = f", as a {OTHERS[width]} has" if width in OTHERS else ""
        expected = f"{PLAIN} (humanoid) or {WITH_HAND} (humanoid with sword and shield)"
        raise ClipError(f"{name}: {width} numbers a frame{body}; expected {expected}")


def from_vector(v: np.ndarray) -> np.ndarray:
    """Rotation vectors (..., 3) rad -> (..., 4)."""
    angle = np.linalg.norm(v, axis=-1, keepdims=True)
    half = np.sinc(angle / (2 * np.pi)) / 2  # sin(angle / 2) / angle
    return np.concatenate([np.cos(angle / 2), v * half], -1)
