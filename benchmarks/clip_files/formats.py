"""Motion files of research formats, made from a clip or from a few numbers."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

from pretrain.characters.rotations import conjugate, from_axis_angle, log, multiply
from pretrain.motion.clip import MotionClip

ORDER = (  # of MimicKit's columns
    "torso",
    "head",
    "right_upper_arm",
    "right_lower_arm",
    "left_upper_arm",
    "left_lower_arm",
    "right_thigh",
    "right_shin",
    "right_foot",
    "left_thigh",
    "left_shin",
    "left_foot",
)
QUARTERS = {"right": -np.pi / 2, "left": np.pi / 2}  # from spread arms to hanging ones, about x


def mimickit_frames(clip: MotionClip) -> np.ndarray:
    """(T, 34) as MimicKit stores them."""
    columns = [clip.root_pos, log(clip.root_rot)]
    for body in ORDER:
        joint = next(joint for joint in clip.skeleton.joints if joint.body == body)
        vector = log(clip.joint_rot[body])
        columns.append(vector if len(joint.axes) == 3 else vector[:, ["xyz".index(joint.axes)]])
    return np.concatenate(columns, axis=1)


def mimickit(clip: MotionClip, **changed: Any) -> bytes:
    """A MimicKit file of the older kind, with some of its keys changed."""
    document = {"loop_mode": 0, "fps": 30, "frames": mimickit_frames(clip).astype(np.float32)}
    return old(pickle.dumps(document | changed, protocol=3))


def old(data: bytes) -> bytes:
    """A pickle as numpy 1 wrote it."""
    return data.replace(b"numpy._core", b"numpy.core")


def hanging(clip: MotionClip) -> tuple[np.ndarray, np.ndarray]:
    """World positions (T, B, 3) and rotations (T, B, 4) of our bodies on a rig whose zero pose has
    hanging arms.
    """
    positions, rotations = clip.world_poses
    rotations = rotations.copy()
    for i, body in enumerate(clip.skeleton.bodies):
        if body.endswith(("arm", "hand")):
            off = from_axis_angle("x", np.full(len(clip), QUARTERS[body.split("_")[0]]))
            rotations[:, i] = multiply(rotations[:, i], off)
    return positions, rotations


def hanging_offsets(clip: MotionClip) -> np.ndarray:
    """The position of each body in its parent's frame, (B, 3), with hanging arms."""
    offsets = np.array(clip.skeleton.offsets)
    for body, parent in zip(clip.skeleton.bodies, clip.skeleton.parents, strict=True):
        if parent >= 0 and clip.skeleton.bodies[parent].endswith("arm"):
            at = clip.skeleton.bodies.index(body)
            offsets[at] = [0, 0, -np.linalg.norm(offsets[at])]
    return offsets.astype(np.float32)


def poselib_document(clip: MotionClip) -> dict[str, Any]:
    """The contents of a poselib file of 15 bodies."""
    positions, rotations = hanging(clip)
    local = rotations.copy()
    for i, parent in enumerate(clip.skeleton.parents):
        if parent >= 0:
            local[:, i] = multiply(conjugate(rotations[:, parent]), rotations[:, i])
    tree = OrderedDict(
        node_names=list(clip.skeleton.bodies),
        local_translation={"arr": hanging_offsets(clip), "context": {"dtype": "float32"}},
        parent_indices={"arr": np.array(clip.skeleton.parents), "context": {"dtype": "int64"}},
    )
    return {
        "rotation": {"arr": local[..., [1, 2, 3, 0]], "context": {"dtype": "float64"}},
        "root_translation": {"arr": positions[:, 0], "context": {"dtype": "float64"}},
        "skeleton_tree": tree,
        "is_local": True,
        "fps": 30.0,
        "__name__": "SkeletonMotion",
    }


def npy(document: object) -> bytes:
    """`document` pickled in an .npy file, as poselib saves it."""
    buffer = io.BytesIO()
    header = {"descr": "|O", "fortran_order": False, "shape": ()}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + old(pickle.dumps(np.array(document, dtype=object), protocol=3))


def npz(**arrays: Any) -> bytes:
    """An .npz of arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def isaac_lab(clip: MotionClip, copies: int = 2, **changed: Any) -> bytes:
    """Isaac Lab's AMP file: each pose `copies` times, at `copies` times the rate."""
    positions, rotations = hanging(clip)
    arrays = {
        "fps": np.array(int(clip.fps * copies)),
        "dof_names": np.array(clip.skeleton.hinges),
        "body_names": np.array(clip.skeleton.bodies),
        "dof_positions": np.zeros((len(clip) * copies, 28), np.float32),
        "body_positions": np.repeat(positions, copies, axis=0).astype(np.float32),
        "body_rotations": np.repeat(rotations, copies, axis=0).astype(np.float32),
    }
    return npz(**(arrays | changed))


ASF = """:version 1.10
:units
  length 0.45
  angle deg
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
   orientation 0 0 0
:bonedata
  begin
     name upper
     direction 0 1 0
     length 2
     axis 10 20 30 XYZ
     dof rx rz
  end
  begin
     name lower
     direction 1 0 0
     length 3
     axis 0 0 0 XYZ
     dof rx ry rz
  end
:hierarchy
  begin
    root upper
    upper lower
  end
"""


def amc(rows: int = 3, first: int = 1) -> str:
    """A take of ASF's skeleton whose frames are numbered from `first` on."""
    bones = "upper 7 8\nlower 9 10 11\n"
    frames = "".join(f"{first + i}\nroot 1 2 3 4 5 {6 + i}\n{bones}" for i in range(rows))
    return f"#!OML:ASF\n:FULLY-SPECIFIED\n:DEGREES\n{frames}"


def walking(count: int) -> np.ndarray:
    """Positions (T, 3) of a body that moves along x at 1 m/s, 100 a second."""
    return np.stack([np.arange(count) / 100, np.zeros(count), np.full(count, 0.9)], -1)


def smpl(count: int = 4, width: int = 156, **changed: Any) -> bytes:
    """An AMASS file of a body that stands and moves along x."""
    arrays = {
        "poses": np.zeros((count, width)),
        "trans": walking(count),
        "mocap_framerate": np.array(100.0),
        "gender": np.array("neutral"),
        "betas": np.zeros(16),
    }
    arrays["poses"][:, 0] = np.pi / 2  # a body's up is y, the world's z
    arrays |= changed
    return npz(**{key: array for key, array in arrays.items() if array is not None})


def protomotions(positions: np.ndarray, rotations: np.ndarray, **others: Any) -> bytes:
    """torch.save's zip of world positions (T, B, 3) and rotations xyzw (T, B, 4), written without
    torch.
    """
    buffer = io.BytesIO()
    tensors = {"rigid_body_pos": positions, "rigid_body_rot": rotations}
    with zipfile.ZipFile(buffer, "w") as archive:
        pickled = _torch_pickle({"fps": 30.0, **others}, tensors)
        archive.writestr("take/data.pkl", pickled)
        for i, tensor in enumerate(tensors.values()):
            archive.writestr(f"take/data/{i}", tensor.astype("<f4").tobytes())
    return buffer.getvalue()


def _torch_pickle(plain: dict[str, Any], tensors: dict[str, np.ndarray]) -> bytes:
    parts = [b"\x80\x02}("]
    for key, value in plain.items():
        parts.append(_plain(key) + (value if isinstance(value, bytes) else _plain(value)))
    for i, (key, tensor) in enumerate(tensors.items()):
        strides = [int(np.prod(tensor.shape[axis + 1 :])) for axis in range(tensor.ndim)]
        storage = [_plain("storage"), b"ctorch\nFloatStorage\n", _plain(str(i)), _plain("cpu")]
        parts += [_plain(key), b"ctorch._utils\n_rebuild_tensor_v2\n(("]
        parts += [*storage, _plain(tensor.size), b"tQK\x00", _plain(tensor.shape)]
        parts += [_plain(tuple(strides)), b"\x89ccollections\nOrderedDict\n)RtR"]
    return b"".join([*parts, b"u."])


def _plain(value: object) -> bytes:
    """The pickle opcodes that build `value`, without head and end."""
    return pickle.dumps(value, protocol=2)[2:-1]
