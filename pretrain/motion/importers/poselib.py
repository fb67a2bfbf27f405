"""poselib's .npy: a pickled SkeletonMotion of 15 bodies (IsaacGymEnvs' AMP) or 17 (ASE's, with
sword and shield).

Rotations xyzw relative to the parent (or to the world, where is_local is false), root position in
m, world z up, x forward, zero pose with hanging arms; the bones are ours. fps is a float, a numpy
scalar or an array, and not round in ASE's files. Velocities are smoothed at the ends, and not read.
(NVlabs/ASE 28952a3d, ase/poselib; isaac-sim/IsaacGymEnvs aeed2986.)"""

from __future__ import annotations

from typing import Any

import numpy as np

from pretrain.characters.rotations import conjugate, multiply
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.importers.archives import MAGIC, split_header
from pretrain.motion.importers.humanoid_frames import (
    HumanoidFrames,
    check_bones,
    check_numbers,
    check_rate,
    make_clip,
    spread_arms,
    unit_quaternions,
)
from pretrain.motion.importers.pickled_arrays import value_of
from pretrain.motion.importers.pickles import load

FIXED = ("right_hand", "left_hand")
MAX_BODIES = 1000
TURNED_HAND = np.radians(2.0)
KEYS = ("rotation", "root_translation", "skeleton_tree", "fps", "is_local")


def recognize(data: bytes) -> bool:
    """Whether `data` is an .npy file."""
    return data.startswith(MAGIC)


def read(data: bytes, name: str, skeleton: Skeleton) -> MotionClip:
    """ClipError names the frame and body that is wrong."""
    document = _document(data, name)
    bodies, parents = _tree(document["skeleton_tree"], name)
    rotations = _array(document["rotation"], f"{name}: rotation")
    root_pos = _array(document["root_translation"], f"{name}: root_translation")
    count = len(root_pos)
    for label, array, shape in (
        ("rotation", rotations, (count, len(bodies), 4)),
        ("root_translation", root_pos, (count, 3)),
    ):
        if array.shape != shape:
            raise ClipError(f"{name}: {label} has shape {array.shape}, expected {shape}")
    _check_size(document["skeleton_tree"], bodies, skeleton, name)
    rate = check_rate(value_of(document["fps"], f"{name}: fps"), count, name)
    rotations = check_numbers(rotations, f"{name}: rotation", bodies)[..., [3, 0, 1, 2]]
    rotations = unit_quaternions(rotations, name, bodies)
    if not _truth(document["is_local"], f"{name}: is_local"):
        rotations = against_parents(rotations, parents)
    root_pos = check_numbers(root_pos, f"{name}: root_translation")
    turns = dict(zip(bodies, np.moveaxis(rotations, 1, 0), strict=True))
    return clip_of(name, rate, root_pos, turns, skeleton)


def clip_of(
    name: str,
    rate: float,
    root_pos: np.ndarray,
    turns: dict[str, np.ndarray],
    skeleton: Skeleton,
) -> MotionClip:
    """A clip from rotations relative to parents, with a zero pose of hanging arms; a warning names
    a hand that turns."""
    moved = [body for body in FIXED if body in turns and _turns(turns[body])]
    missing = [joint.body for joint in skeleton.joints if joint.body not in turns]
    if missing or "pelvis" not in turns:
        there = ", ".join(turns)[:300]
        raise ClipError(f"{name}: no body {', '.join(missing or ['pelvis'])[:200]}; it has {there}")
    reason = f"is left out: {skeleton.name} has no joint there"
    lines = tuple(f"{name}: the turn of its {body.replace('_', ' ')} {reason}" for body in moved)
    joint_rot = {joint.body: turns[joint.body] for joint in skeleton.joints}
    frames = HumanoidFrames(name, rate, root_pos, turns["pelvis"], spread_arms(joint_rot), lines)
    return make_clip(frames, skeleton)


def against_parents(rotations: np.ndarray, parents: tuple[int, ...]) -> np.ndarray:
    """Rotations in the world (T, B, 4) -> relative to parents."""
    local = rotations.copy()
    for body, parent in enumerate(parents):
        if parent >= 0:
            local[:, body] = multiply(conjugate(rotations[:, parent]), rotations[:, body])
    return local


def _check_size(tree: Any, bodies: tuple[str, ...], skeleton: Skeleton, name: str) -> None:
    """ClipError where the tree's bones differ from ours."""
    if tree.get("local_translation") is None or not set(skeleton.bodies) <= set(bodies):
        return  # `clip_of` reports a missing body
    label = f"{name}: local_translation"
    offsets = _array(tree["local_translation"], label)
    if offsets.shape != (len(bodies), 3):
        raise ClipError(f"{label} has shape {offsets.shape}, expected ({len(bodies)}, 3)")
    offsets = check_numbers(offsets, label)
    check_bones(dict(zip(bodies, offsets, strict=True)), skeleton, label)


def _turns(q: np.ndarray) -> bool:
    return bool((np.abs(q[:, 0]) < np.cos(TURNED_HAND / 2)).any())


def _document(data: bytes, name: str) -> dict[str, Any]:
    kind, shape, _, raw = split_header(data, name)
    if kind not in ("O", "|O") or shape != ():
        content = f"an array of {kind!r} of shape {shape}"
        raise ClipError(f"{name}: {content}, expected poselib's pickled SkeletonMotion")
    document = value_of(load(raw, name), name)
    if not isinstance(document, dict):
        raise ClipError(f"{name}: holds {type(document).__name__}, expected a SkeletonMotion")
    if missing := [key for key in KEYS if key not in document]:
        there = ", ".join(map(str, document))[:200]
        lacking = ", ".join(missing)
        raise ClipError(f"{name}: no {lacking}, expected a SkeletonMotion; it has {there}")
    return document


def _truth(value: Any, label: str) -> bool:
    """A bool, or an array of one."""
    value = value_of(value, label)
    array = np.asarray(value if isinstance(value, bool | np.bool_ | np.ndarray) else None)
    if array.dtype.kind != "b" or array.size != 1:
        content = f"{type(value).__name__} {str(value)[:40]}"
        raise ClipError(f"{label} is {content}, expected True or False")
    return bool(array.item())


def _array(value: Any, label: str) -> np.ndarray:
    """The array of poselib's {"arr": ..., "context": ...}."""
    array = value_of(value.get("arr") if isinstance(value, dict) else value, label)
    if not isinstance(array, np.ndarray):
        raise ClipError(f"{label} is {type(array).__name__}, expected an array")
    return array


def _tree(value: Any, name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and parents of the bodies, parent-first."""
    tree: dict[Any, Any] = value if isinstance(value, dict) else {}
    parents = _array(tree.get("parent_indices"), f"{name}: parent_indices")
    bodies: Any = tree.get("node_names")
    sound = isinstance(bodies, list) and 0 < len(bodies) <= MAX_BODIES
    if not sound or not all(isinstance(body, str) for body in bodies):
        raise ClipError(f"{name}: node_names is no list of names, expected 15 or 17 bodies")
    if parents.shape != (len(bodies),) or parents.dtype.kind != "i":
        expected = f"{len(bodies)} whole numbers"
        actual = f"{parents.dtype} {parents.shape}"
        raise ClipError(f"{name}: parent_indices is {actual}, expected {expected}")
    if (parents >= np.arange(len(bodies))).any() or (parents < -1).any():
        raise ClipError(f"{name}: parent_indices name a body before its parent")
    return tuple(bodies), tuple(map(int, parents))
