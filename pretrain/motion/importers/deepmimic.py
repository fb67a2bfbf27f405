"""The DeepMimic clip format: JSON {"Loop": "wrap" | "none", "Frames": [[44 numbers]]}, y up, x
forward, z right.

A frame: duration, root position, root quaternion wxyz, then per joint a quaternion (4) or a hinge
angle (1), each relative to its parent; the zero pose has hanging arms. Bone lengths are those of
our humanoid, so nothing is retargeted. (Peng et al. 2018, arXiv 1804.02717; the layout is that of
its published files.)"""

from __future__ import annotations

import json
from reprlib import repr as shortened

import numpy as np

from pretrain.characters import rotations
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import CONTROL_RATE, ClipError, MotionClip, at_rate, continuous

ROOT_ROT = slice(4, 8)
BALLS = {  # body -> first of its four columns
    "torso": 8,
    "head": 12,
    "right_thigh": 16,
    "right_foot": 21,
    "right_upper_arm": 25,
    "left_thigh": 30,
    "left_foot": 35,
    "left_upper_arm": 39,
}
HINGES = {  # body -> (column, axis and sign in our body): knees bend about -y, elbows about z
    "right_shin": (20, "y", -1.0),
    "left_shin": (34, "y", -1.0),
    "right_lower_arm": (29, "z", 1.0),
    "left_lower_arm": (43, "z", -1.0),
}
COLUMNS = 44
# From hanging arms to our T-pose: a quarter turn about x, after the shoulder's own rotation.
ARM_TO_T_POSE = {"right_upper_arm": np.pi / 2, "left_upper_arm": -np.pi / 2}
UNIT_TOLERANCE = 1e-3
LONGEST_FRAME = (
    1.0  # s; a longer one is an error, and resampling it could take any amount of memory
)


def recognize(data: bytes) -> bool:
    """Whether `data` begins like JSON; `read` reports what is missing."""
    return data[:200].lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))


def read(data: bytes, name: str, skeleton: Skeleton) -> MotionClip:
    """Frames of `data` at the control rate, z up. `name` is only for messages."""
    missing = {*BALLS, *HINGES} - {joint.body for joint in skeleton.joints}
    if missing:
        raise ClipError(
            f"{name}: DeepMimic clips need a humanoid; {skeleton.name!r} lacks "
            f"{', '.join(sorted(missing))}"
        )
    frames = _parse(data, name)
    stamps = _stamps(frames, name)
    lengths: dict[str, np.ndarray] = {}  # of the file's quaternions, by body

    def quaternion(column: int, label: str) -> np.ndarray:
        q = frames[:, column : column + 4]
        lengths[label] = _lengths(q, f"{name}: {label}")
        return q / lengths[label][:, None]

    joint_rot = {}
    for body, column in BALLS.items():
        q = _z_up(quaternion(column, body))
        if body in ARM_TO_T_POSE:
            q = rotations.multiply(
                q, rotations.from_axis_angle("x", np.full(len(q), ARM_TO_T_POSE[body]))
            )
        joint_rot[body] = continuous(q)
    for body, (column, axis, sign) in HINGES.items():
        joint_rot[body] = rotations.from_axis_angle(axis, sign * frames[:, column])
    root_rot = continuous(_z_up(quaternion(ROOT_ROT.start, "root")))
    x = frames[:, 1]
    y = frames[:, 2]
    z = frames[:, 3]
    clip = MotionClip(
        name=name,
        fps=CONTROL_RATE,
        root_pos=np.stack([x, -z, y], -1),
        root_rot=root_rot,
        joint_rot=joint_rot,
        skeleton=skeleton,
        warnings=_not_unit(lengths, name),
    )
    return at_rate(clip, stamps, CONTROL_RATE)


def _parse(data: bytes, name: str) -> np.ndarray:
    try:
        # An int of more digits than Python converts (4300) would fail for the whole file; as a
        # float it is refused below, by frame.
        document = json.loads(data, parse_int=float)
    except (ValueError, RecursionError) as error:
        raise ClipError(f"{name}: not JSON ({error})") from None
    if not isinstance(document, dict) or not isinstance(document.get("Frames"), list):
        raise ClipError(
            f'{name}: expected {{"Loop": "wrap" | "none", "Frames": [[{COLUMNS} numbers], ...]}}'
        )
    loop = document.get("Loop", "none")
    if loop not in ("wrap", "none"):
        raise ClipError(f'{name}: Loop is {shortened(loop)}, expected "wrap" or "none"')
    rows = document["Frames"]
    if len(rows) < 2:
        raise ClipError(f"{name}: {len(rows)} frame(s), expected at least 2")
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != COLUMNS:
            size = len(row) if isinstance(row, list) else "no"
            raise ClipError(f"{name}: frame {i} has {size} columns, expected {COLUMNS}")
        for c, value in enumerate(row):
            if not isinstance(value, float) or not abs(value) < 1e6:
                raise ClipError(
                    f"{name}: frame {i} column {c} is {shortened(value)}, expected a finite "
                    "number below 1e6"
                )
    return np.array(rows, dtype=np.float64)


def _stamps(frames: np.ndarray, name: str) -> np.ndarray:
    """Time of each frame, s. Column 0 lasts from its frame to the next; it varies in some clips."""
    durations = frames[:-1, 0]
    if (bad := np.flatnonzero((durations <= 0) | (durations > LONGEST_FRAME))).size:
        expected = f"expected more than 0 and at most {LONGEST_FRAME:g} s"
        raise ClipError(f"{name}: frame {bad[0]} lasts {durations[bad[0]]:g} s, {expected}")
    return np.concatenate([[0.0], np.cumsum(durations)])


def _lengths(q: np.ndarray, label: str) -> np.ndarray:
    """Lengths (T,) of quaternions (T, 4); ClipError for a zero one."""
    length = np.linalg.norm(q, axis=-1)
    if (dead := np.flatnonzero(length < 1e-3)).size:
        raise ClipError(
            f"{label}: quaternion of frame {dead[0]} is zero, expected a unit quaternion wxyz"
        )
    return length


def _not_unit(lengths: dict[str, np.ndarray], name: str) -> tuple[str, ...]:
    """One line on all quaternions that were normalized, if any."""
    off = {body: np.abs(length - 1) for body, length in lengths.items()}
    several = {body: int((x > UNIT_TOLERANCE).sum()) for body, x in off.items()}
    if not any(several.values()):
        return ()
    body = max(off, key=lambda body: off[body].max())
    frame = int(off[body].argmax())
    worst = f"worst |q| = {lengths[body][frame]:.3f}, {body} in frame {frame}"
    bodies = ", ".join(f"{body} {n}" for body, n in several.items() if n)
    return (f"{name}: {sum(several.values())} non-unit quaternions normalized, {worst} ({bodies})",)


def _z_up(q: np.ndarray) -> np.ndarray:
    """From y-up, z-right axes to z-up, y-left axes: a quarter turn about x of the frame itself."""
    w = q[:, 0]
    x = q[:, 1]
    y = q[:, 2]
    z = q[:, 3]
    return np.stack([w, x, -z, y], -1)
