"""AMASS's .npz: rotation vectors of SMPL's joints, of SMPL-H (156 numbers) or SMPL-X (165).

poses (T, 66 or more) begins with root and 21 body joints in all of them (jaw and eyes follow in
SMPL-X), trans (T, 3) m, world z up; a body's axes are x left, y up, z forward, zero pose with
spread arms. The rate is `mocap_framerate` in SMPL-H's release and `mocap_frame_rate` in SMPL-X's.
Bone lengths are those of an average adult to the centimeter, with limbs in the planes of knee and
elbow flexion: `betas` would need SMPL's model. (amass.is.tue.mpg.de; Mahmood et al. 2019.)"""

from __future__ import annotations

import numpy as np

from pretrain.motion.clip import ClipError
from pretrain.motion.importers.archives import entry_names, read_arrays
from pretrain.motion.importers.humanoid_frames import check_numbers, check_rate
from pretrain.motion.importers.mimickit import from_vector
from pretrain.motion.raw import RawMotion

RATES = ("mocap_framerate", "mocap_frame_rate")
WIDTHS = {66: "body", 72: "SMPL", 156: "SMPL-H", 165: "SMPL-X"}
Y_TO_Z = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)  # from a body's y up to the world's z up
# name, parent, m from the parent's joint: left, up, forward
JOINTS = (
    ("Pelvis", -1, (0.0, 0.0, 0.0)),
    ("L_Hip", 0, (0.07, -0.09, 0.0)),
    ("R_Hip", 0, (-0.07, -0.09, 0.0)),
    ("Spine1", 0, (0.0, 0.11, -0.03)),
    ("L_Knee", 1, (0.01, -0.38, -0.01)),
    ("R_Knee", 2, (-0.01, -0.38, -0.01)),
    ("Spine2", 3, (0.0, 0.14, 0.0)),
    ("L_Ankle", 4, (0.01, -0.4, -0.04)),
    ("R_Ankle", 5, (-0.01, -0.4, -0.04)),
    ("Spine3", 6, (0.0, 0.05, 0.03)),
    ("L_Toe", 7, (0.03, -0.05, 0.12)),
    ("R_Toe", 8, (-0.03, -0.05, 0.12)),
    ("Neck", 9, (0.0, 0.21, -0.04)),
    ("L_Collar", 9, (0.08, 0.12, -0.04)),
    ("R_Collar", 9, (-0.08, 0.12, -0.04)),
    ("Head", 12, (0.0, 0.07, 0.05)),
    ("L_Shoulder", 13, (0.09, 0.03, -0.01)),
    ("R_Shoulder", 14, (-0.09, 0.03, -0.01)),
    ("L_Elbow", 16, (0.26, 0.0, -0.02)),
    ("R_Elbow", 17, (-0.26, 0.0, -0.02)),
    ("L_Wrist", 18, (0.25, 0.0, 0.0)),
    ("R_Wrist", 19, (-0.25, 0.0, 0.0)),
)
NAMES = tuple(name for name, _, _ in JOINTS)
UNREAD_BETAS = "{}: betas are not read, bone lengths are those of an average adult"


def recognize(data: bytes) -> bool:
    """Whether `data` is an .npz of SMPL poses."""
    names = entry_names(data)
    return "trans" in names and ("poses" in names or names >= {"root_orient", "pose_body"})


def read(data: bytes, name: str) -> RawMotion:
    """ClipError names the frame and joint that is wrong."""
    names = entry_names(data)
    trans = read_arrays(data, name, ["trans"])["trans"]
    vectors = _vectors(data, name, names)
    count = len(vectors)
    if trans.shape != (count, 3):
        raise ClipError(f"{name}: trans has shape {trans.shape}, expected ({count}, 3)")
    rate = check_rate(_rate(data, name, names), count, name)
    columns = tuple(np.repeat(NAMES, 3).tolist())
    vectors = check_numbers(vectors, f"{name}: poses", columns)
    rest = np.zeros((len(JOINTS), 4))
    rest[:, 0] = 1
    rest[0] = Y_TO_Z
    return RawMotion(
        name=name,
        rate=rate,
        joints=NAMES,
        parents=tuple(parent for _, parent, _ in JOINTS),
        offsets=np.array([offset for _, _, offset in JOINTS]),
        rotations=from_vector(vectors.reshape(count, len(JOINTS), 3)),
        root_pos=check_numbers(trans, f"{name}: trans"),
        rest=rest,
        up="z",
        warnings=(UNREAD_BETAS.format(name),) if "betas" in names else (),
    )


def _vectors(data: bytes, name: str, names: frozenset[str]) -> np.ndarray:
    """Rotation vectors of the body's joints, (T, 66)."""
    keys = ("poses",) if "poses" in names else ("root_orient", "pose_body")
    parts = read_arrays(data, name, keys)
    if any(part.ndim != 2 for part in parts.values()) or len(set(map(len, parts.values()))) > 1:
        shapes = ", ".join(f"{key} {part.shape}" for key, part in parts.items())
        raise ClipError(f"{name}: {shapes}, expected one row a frame")
    poses = np.concatenate([parts[key] for key in keys], axis=1)
    if poses.shape[1] not in WIDTHS:
        widths = ", ".join(f"{width} ({body})" for width, body in WIDTHS.items())
        raise ClipError(f"{name}: {poses.shape[1]} numbers a pose, expected {widths}")
    return poses[:, : 3 * len(JOINTS)]


def _rate(data: bytes, name: str, names: frozenset[str]) -> object:
    stated = [key for key in RATES if key in names]
    if not stated:
        raise ClipError(f"{name}: states no rate, expected {' or '.join(RATES)}; none is assumed")
    rates = read_arrays(data, name, stated)
    if len({str(rates[key]) for key in stated}) > 1:
        shown = ", ".join(f"{key} {rates[key]}" for key in stated)
        raise ClipError(f"{name}: states two rates, {shown}; leave the one that is right")
    return rates[stated[0]]
