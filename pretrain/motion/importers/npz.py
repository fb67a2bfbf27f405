"""The project's clip format: an .npz of a few arrays, written by `python -m pretrain.motion
convert`.

fps (), root_pos (T, 3) m, root_rot (T, 4) wxyz, joint_pos (T, J) rad in the order of `hinges` (J,),
the texts character, source and licence, and maybe `inputs`, the digest of what it was converted
from. World z up; nothing is retargeted or moved to the ground."""

from __future__ import annotations

import io
import zipfile

import numpy as np

from pretrain.characters import rotations
from pretrain.characters.kinematics import ball_rotations
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip, continuous
from pretrain.motion.importers.archives import entry_names, read_arrays
from pretrain.motion.importers.humanoid_frames import check_rate

SHAPES = {
    "fps": 0,
    "root_pos": 2,
    "root_rot": 2,
    "joint_pos": 2,
    "hinges": 1,
    "character": 0,
    "source": 0,
    "licence": 0,
}
INPUTS = "inputs"
LARGEST = 1e6
UNIT_TOLERANCE = 1e-3


def recognize(data: bytes) -> bool:
    """Whether `data` is a zip that holds our arrays."""
    return entry_names(data) >= {"root_rot", "hinges"}


def read(data: bytes, name: str, skeleton: Skeleton) -> MotionClip:
    """ClipError names the array that is wrong."""
    arrays = _load(data, name)
    hinges = tuple(map(str, arrays["hinges"]))
    if hinges != skeleton.hinges:
        raise ClipError(
            f"{name}: its hinges are {', '.join(hinges)[:200]}; {skeleton.name!r} has others"
        )
    joint_pos = arrays["joint_pos"].astype(np.float64)
    balls = ball_rotations(skeleton, joint_pos)
    joint_rot: dict[str, np.ndarray] = {}
    for joint in skeleton.joints:
        if len(joint.axes) == 3:
            joint_rot[joint.body] = continuous(balls[:, skeleton.balls.index(joint)])
        else:
            joint_rot[joint.body] = rotations.from_axis_angle(joint.axes, joint_pos[:, joint.start])
    return MotionClip(
        name=name,
        fps=float(arrays["fps"]),
        root_pos=arrays["root_pos"].astype(np.float64),
        root_rot=continuous(rotations.normalize(arrays["root_rot"].astype(np.float64))),
        joint_rot=joint_rot,
        skeleton=skeleton,
        source=str(arrays["source"]),
        licence=str(arrays["licence"]),
    )


def read_inputs(data: bytes, name: str) -> str:
    """The digest of what `data` was converted from; empty where it has none or is no clip."""
    try:
        return str(read_arrays(data, name, (INPUTS,))[INPUTS]) if recognize(data) else ""
    except ClipError:  # as of an earlier version
        return ""


def write(clip: MotionClip, inputs: str = "") -> bytes:
    """The inverse of `read`, with float32 angles and the same bytes for the same clip and
    `inputs`, the digest of what it was converted from."""
    arrays = {
        "fps": np.array(clip.fps),
        "root_pos": clip.root_pos.astype(np.float32),
        "root_rot": clip.root_rot.astype(np.float32),
        "joint_pos": clip.joint_pos.astype(np.float32),
        "hinges": np.array(clip.skeleton.hinges),
        "character": np.array(clip.skeleton.name),
        "source": np.array(clip.source),
        "licence": np.array(clip.licence),
    }
    if inputs:
        arrays[INPUTS] = np.array(inputs)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(
                zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0)),
                buffer.getvalue(),
                zipfile.ZIP_DEFLATED,
            )
    return packed.getvalue()


def _load(data: bytes, name: str) -> dict[str, np.ndarray]:
    try:
        arrays = read_arrays(data, name, SHAPES)
    except ClipError as error:
        reason = str(error).removeprefix(f"{name}: ")
        raise ClipError(f"{name}: not a clip of this project ({reason})") from None
    frames = len(arrays["root_pos"]) if arrays["root_pos"].ndim else 0
    widths = {"root_pos": 3, "root_rot": 4, "joint_pos": arrays["hinges"].size}
    for key, axes in SHAPES.items():
        array = arrays[key]
        if array.ndim != axes or (axes == 2 and array.shape != (frames, widths[key])):
            expected = f"({frames}, {widths[key]})" if axes == 2 else f"{axes} axes"
            raise ClipError(f"{name}: {key} has shape {array.shape}, expected {expected}")
        text = key in ("hinges", "character", "source", "licence")
        if array.dtype.kind != ("U" if text else "f"):
            raise ClipError(
                f"{name}: {key} holds {array.dtype}, expected {'text' if text else 'floats'}"
            )
        if not text and not (np.abs(array) < LARGEST).all():
            raise ClipError(f"{name}: {key} is not finite and below {LARGEST:g}")
    check_rate(arrays["fps"], frames, name)
    if (np.abs(np.linalg.norm(arrays["root_rot"], axis=-1) - 1) > UNIT_TOLERANCE).any():
        raise ClipError(
            f"{name}: root_rot holds quaternions that are not of length 1, expected wxyz"
        )
    return arrays
