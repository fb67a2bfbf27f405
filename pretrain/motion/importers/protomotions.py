"""ProtoMotions' .motion: torch.save's zip of a pickled dict of tensors, read without torch.

rigid_body_pos (T, B, 3) m and rigid_body_rot (T, B, 4) xyzw, both in the world, z up; fps. Bodies
have no names in the file; their number identifies SMPL (24), SMPL-X (52) and SOMA (23), in the
order of their MJCF, and a Unitree G1 (33). (NVlabs/ProtoMotions 607ca7a0.)"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from pretrain.characters.rotations import conjugate, rotate
from pretrain.motion.clip import ClipError
from pretrain.motion.importers.archives import entry_names, read_entries
from pretrain.motion.importers.humanoid_frames import check_numbers, check_rate, unit_quaternions
from pretrain.motion.importers.pickled_arrays import ARRAYS, Maker, value_of
from pretrain.motion.importers.pickles import load
from pretrain.motion.importers.poselib import against_parents
from pretrain.motion.importers.robots import NO_BODY
from pretrain.motion.raw import RawMotion

STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "BoolStorage": "?",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
STATE = ("protomotions.simulator.base_simulator.simulator_state", "StateConversion")
LEG = ("Hip", "Knee", "Ankle", "Toe")
ARM = ("Thorax", "Shoulder", "Elbow", "Wrist")
FINGERS = ("Index", "Middle", "Pinky", "Ring", "Thumb")
TRUNK = ("Torso", "Spine", "Chest", "Neck", "Head")
MAX_AXES = 8
ROBOTS = {33: "a Unitree G1"}


def _limb(names: tuple[str, ...], side: str) -> list[str]:
    return [f"{side}_{name}" for name in names]


def _hand(side: str) -> list[str]:
    return [f"{side}_{finger}{bone}" for finger in FINGERS for bone in (1, 2, 3)]


LEGS = ["Pelvis", *_limb(LEG, "L"), *_limb(LEG, "R"), *TRUNK]
LEGS_ON = [-1, 0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11, 12]
FINGERS_ON = [-1, 0, 1, -1, 3, 4, -1, 6, 7, -1, 9, 10, -1, 12, 13]  # -1: the wrist
SOMA = (
    "Hips Spine1 Spine2 Chest Neck1 Neck2 Head RightShoulder RightArm RightForeArm RightHand "
    "LeftShoulder LeftArm LeftForeArm LeftHand RightLeg RightShin RightFoot RightToeBase LeftLeg "
    "LeftShin LeftFoot LeftToeBase"
)
SOMA_ON = (-1, 0, 1, 2, 3, 4, 5, 3, 7, 8, 9, 3, 11, 12, 13, 0, 15, 16, 17, 0, 19, 20, 21)


def _smpl_x_parents() -> tuple[int, ...]:
    hands = [wrist if p < 0 else wrist + 1 + p for wrist in (17, 36) for p in FINGERS_ON]
    return (*LEGS_ON, 11, 14, 15, 16, *hands[:15], 11, 33, 34, 35, *hands[15:])


BODIES: dict[int, tuple[tuple[str, ...], tuple[int, ...]]] = {  # number -> names, parents
    24: (
        (*LEGS, *_limb((*ARM, "Hand"), "L"), *_limb((*ARM, "Hand"), "R")),
        (*LEGS_ON, 11, 14, 15, 16, 17, 11, 19, 20, 21, 22),
    ),
    52: (
        (*LEGS, *_limb(ARM, "L"), *_hand("L"), *_limb(ARM, "R"), *_hand("R")),
        _smpl_x_parents(),
    ),
    23: (tuple(SOMA.split()), SOMA_ON),
}


def recognize(data: bytes) -> bool:
    """Whether `data` is a zip of torch.save."""
    return any(entry.endswith("/data.pkl") for entry in entry_names(data))


def read(data: bytes, name: str) -> RawMotion:
    """ClipError names the wrong frame and body, or the robot of the file."""
    document = _document(data, name)
    positions = _tensor(document.get("rigid_body_pos"), f"{name}: rigid_body_pos")
    rotations = _tensor(document.get("rigid_body_rot"), f"{name}: rigid_body_rot")
    count, bodies = positions.shape[:2] if positions.ndim == 3 else (0, 0)
    if bodies in ROBOTS:
        raise ClipError(f"{name}: {bodies} bodies, {ROBOTS[bodies]}'s motion; {NO_BODY}")
    if positions.shape != (count, bodies, 3) or rotations.shape != (count, bodies, 4):
        shapes = f"{positions.shape} and {rotations.shape}"
        raise ClipError(f"{name}: shapes {shapes}, expected (T, B, 3) and (T, B, 4)")
    if bodies not in BODIES:
        expected = "expected 24 (SMPL), 52 (SMPL-X) or 23 (SOMA)"
        raise ClipError(f"{name}: {bodies} bodies without names, {expected}")
    if document.get("state_conversion") not in (None, "common"):
        raise ClipError(f"{name}: bodies in a simulator's order, expected ProtoMotions' common one")
    if "fps" not in document:
        raise ClipError(f"{name}: states no fps, expected one; save it again with its rate")
    joints, parents = BODIES[bodies]
    rate = check_rate(value_of(document["fps"], f"{name}: fps"), count, name)
    positions = check_numbers(positions, f"{name}: rigid_body_pos", joints)
    rotations = check_numbers(rotations, f"{name}: rigid_body_rot", joints)[..., [3, 0, 1, 2]]
    rotations = unit_quaternions(rotations, name, joints)
    moved = _against_parents(positions, rotations, parents)
    return RawMotion(
        name=name,
        rate=rate,
        joints=joints,
        parents=parents,
        offsets=np.stack([moved[joint].mean(0) for joint in range(bodies)]),
        rotations=against_parents(rotations, parents),
        root_pos=positions[:, 0],
        translations={joint: moved[joint] for joint in range(1, bodies)},
        up="z",
    )


def _against_parents(
    positions: np.ndarray,
    rotations: np.ndarray,
    parents: tuple[int, ...],
) -> list[np.ndarray]:
    """Position of each body in its parent's frame, (T, 3) each."""
    offsets = [positions[:, 0]]
    for body, parent in enumerate(parents[1:], start=1):
        gap = positions[:, body] - positions[:, parent]
        offsets.append(rotate(conjugate(rotations[:, parent]), gap))
    return offsets


def _document(data: bytes, name: str) -> dict[Any, Any]:
    """The pickled dict, with tensors as arrays."""
    entry = next(entry for entry in sorted(entry_names(data)) if entry.endswith("/data.pkl"))
    folder = entry.removesuffix("data.pkl")
    names = {
        **ARRAYS,
        ("torch._utils", "_rebuild_tensor_v2"): Maker(_rebuild),
        STATE: Maker(lambda value: value),
        **{("torch", kind): Maker(_constant(dtype)) for kind, dtype in STORAGES.items()},
    }

    def storage(pid: Any) -> np.ndarray:
        """The numbers of ("storage", type, key, device, count)."""
        if not isinstance(pid, tuple) or len(pid) != 5 or not isinstance(pid[1], Maker):
            raise pickle.UnpicklingError("a storage that is none of torch's")
        raw = read_entries(data, name, [f"{folder}data/{pid[2]}"])
        return np.frombuffer(raw[f"{folder}data/{pid[2]}"], pid[1]())

    raw = read_entries(data, name, [entry])[entry]
    document = load(raw, name, names, storage)
    if not isinstance(document, dict):
        raise ClipError(f"{name}: holds {type(document).__name__}, expected ProtoMotions' dict")
    return document


def _constant(value: str) -> Callable[[], str]:
    return lambda: value


def _rebuild(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> np.ndarray:
    """A tensor with any strides."""
    if not isinstance(storage, np.ndarray) or len(size) != len(stride) or len(size) > MAX_AXES:
        raise pickle.UnpicklingError("a tensor without storage, size and stride")
    if any(type(n) is not int or n < 0 for n in (offset, *size, *stride)):
        raise pickle.UnpicklingError(f"a tensor of size {size} and stride {stride}")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if math.prod(size) > len(storage) or (math.prod(size) and last >= len(storage)):
        raise pickle.UnpicklingError(f"{len(storage)} numbers for a tensor of size {size}")
    steps = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps).copy()


def _tensor(value: Any, label: str) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise ClipError(f"{label} is {type(value).__name__}, expected a tensor of bodies")
    return value
