"""Reads motion files as MotionClip: one module per format, recognized by content. Numpy only: the
service imports it.

A format on our skeleton reads a MotionClip; any other reads a RawMotion, which is retargeted. A new
format is one module with `recognize(data) -> bool` and `read`, and one line of FORMATS.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import CONTROL_RATE, ClipError, MotionClip
from pretrain.motion.importers import (
    amc,
    bvh,
    deepmimic,
    isaac_lab,
    mimickit,
    npz,
    poselib,
    protomotions,
    robots,
    smpl,
)
from pretrain.motion.importers.copies import without_copies
from pretrain.motion.importers.jumps import find_jumps
from pretrain.motion.raw import RawMotion
from pretrain.motion.retargeting.retarget import retarget
from pretrain.motion.retargeting.settle import settle_retargeted


@dataclass(frozen=True)
class RawFormat:
    """Files on a skeleton of their own, which are retargeted, held within the hinges' ranges and
    planted."""

    suffixes: tuple[str, ...]  # only to list files and for messages
    recognize: Callable[[bytes], bool]
    read: Callable[[bytes, str], RawMotion]


@dataclass(frozen=True)
class ClipFormat:
    """Files on our skeleton."""

    suffixes: tuple[str, ...]
    recognize: Callable[[bytes], bool]
    read: Callable[[bytes, str, Skeleton], MotionClip]
    settle: Callable[[MotionClip], MotionClip]  # puts the clip on the ground


def as_it_is(clip: MotionClip) -> MotionClip:
    """`clip`, which is on the ground already."""
    return clip


Format = RawFormat | ClipFormat

FORMATS: dict[str, Format] = {
    "deepmimic": ClipFormat(
        (".txt", ".json"),
        deepmimic.recognize,
        deepmimic.read,
        MotionClip.grounded,
    ),
    "bvh": RawFormat((".bvh",), bvh.recognize, bvh.read),
    "asf/amc": RawFormat((".amc",), amc.recognize, amc.read),
    "mimickit": ClipFormat((".pkl",), mimickit.recognize, mimickit.read, MotionClip.grounded),
    "poselib": ClipFormat((".npy",), poselib.recognize, poselib.read, MotionClip.grounded),
    "npz": ClipFormat((".npz",), npz.recognize, npz.read, as_it_is),
    "isaac lab": ClipFormat((".npz",), isaac_lab.recognize, isaac_lab.read, MotionClip.grounded),
    "amass": RawFormat((".npz",), smpl.recognize, smpl.read),
    "protomotions": RawFormat((".motion",), protomotions.recognize, protomotions.read),
    "mjlab": ClipFormat((".npz",), robots.recognize_arrays, robots.read_arrays, as_it_is),
    "robot table": ClipFormat((".csv",), robots.recognize_table, robots.read_table, as_it_is),
}
_SUFFIXES = (suffix for format_ in FORMATS.values() for suffix in format_.suffixes)
SUFFIXES = tuple(dict.fromkeys(_SUFFIXES))


def is_recognized(data: bytes) -> bool:
    """Whether a file's bytes are of a known format."""
    return any(format_.recognize(data) for format_ in FORMATS.values())


def recognize(data: bytes, filename: str) -> Format:
    """The format of a file's bytes; ClipError lists those that there are."""
    for format_ in FORMATS.values():
        if format_.recognize(data):
            return format_
    kinds = {name: ", ".join(format_.suffixes) for name, format_ in FORMATS.items()}
    formats = ", ".join(f"{name} ({suffixes})" for name, suffixes in kinds.items())
    raise ClipError(f"{filename}: its content is of no known format; there are: {formats}")


def name_of(filename: str) -> str:
    """The name of the clip of a file."""
    return PurePath(filename).stem.removeprefix("humanoid3d_")


def _refuse_joints(joints: Mapping[str, str]) -> str:
    formats = ", ".join(name for name, format_ in FORMATS.items() if isinstance(format_, RawFormat))
    named = ", ".join(f"{part}: {joint}" for part, joint in joints.items())[:200]
    return f"skeleton {{{named}}}, expected none; formats that take it: {formats}"


def read_clip(
    data: bytes,
    filename: str,
    skeleton: Skeleton,
    low_pass: float | None = None,
    joints: Mapping[str, str] | None = None,
) -> MotionClip:
    """A clip at the control rate, on the ground, from a file's bytes. The format is found by
    content.

    `low_pass` (Hz) attenuates higher frequencies. `joints` maps parts of a body to joints of the
    file that are not recognized by name: "left_thigh": "Bone_017"; ClipError where the file is on
    our skeleton."""
    format_ = recognize(data, filename)
    if joints and not isinstance(format_, RawFormat):
        raise ClipError(f"{filename}: {_refuse_joints(joints)}")
    try:
        if isinstance(format_, RawFormat):
            clip = retarget(format_.read(data, filename), skeleton, joints)
            settle = settle_retargeted
        else:
            clip = format_.read(data, filename, skeleton)
            settle = format_.settle
    except ClipError as error:  # text of the file may be impossible to encode
        raise ClipError(str(error).encode(errors="backslashreplace").decode()) from None
    clip = without_copies(clip)
    if (len(clip) - 1) / clip.fps < 1 / CONTROL_RATE - 1e-9:
        step = f"a control step of {1 / CONTROL_RATE:.3f} s"
        raise ClipError(f"{filename}: shorter than {step}, so there is no motion in it")
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    clip = replace(clip, name=name_of(filename), digest=digest)
    clip = replace(clip, warnings=(*clip.warnings, *find_jumps(clip))).resampled()
    return settle(clip if low_pass is None else clip.low_passed(low_pass))
