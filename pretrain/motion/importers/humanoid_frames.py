"""Frames of the body shared by MimicKit, poselib's AMP clips, ASE, Isaac Lab and this project: the
bones are the same, so nothing is retargeted.

World z up, x forward, meters. The zero pose has spread arms here and in MimicKit, hanging arms in
the others: a quarter turn about x apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pretrain.characters.rotations import (
    AXIS,
    conjugate,
    from_axis_angle,
    log,
    multiply,
    normalize,
    up_axis,
)
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip, continuous

LONGEST = 3600.0  # s of a take
MAX_FRAMES = 2_000_000
RATES = (1.0, 1000.0)  # frames/s
LARGEST = 1e6  # m, rad
UNIT_TOLERANCE = 1e-3
OFF_AXIS = np.radians(2.0)  # of a knee or elbow, above which a warning names the loss
TALLEST = 5.0  # m of the root above the ground, median
SMALLEST = 0.03  # m, median
LYING = 0.3  # vertical part of the root's up axis
UPRIGHT_NAMES = ("walk", "run", "jog", "stand", "step", "idle")
QUARTER = np.pi / 2
SAME_SIZE = 0.02  # m by which a bone of the file may differ from ours
SIDED = ("right_upper_arm", "left_upper_arm", "right_thigh", "left_thigh")
ARMS = {
    "right_upper_arm": QUARTER,
    "right_lower_arm": QUARTER,
    "left_upper_arm": -QUARTER,
    "left_lower_arm": -QUARTER,
}


@dataclass(frozen=True)
class HumanoidFrames:
    """Poses of our bones as a file states them."""

    name: str
    rate: float  # frames/s
    root_pos: np.ndarray  # (T, 3) m
    root_rot: np.ndarray  # (T, 4) wxyz
    turns: dict[str, np.ndarray]  # body -> (T, 4) wxyz against its parent
    warnings: tuple[str, ...] = field(default=())


def check_rate(rate: object, count: int, name: str) -> float:
    """`rate` in frames/s, of a take of `count` frames; ClipError with the reason."""
    try:
        value = float(np.asarray(rate, dtype=np.float64).reshape(()))
    except (TypeError, ValueError):
        value = np.nan
    if not RATES[0] <= value <= RATES[1]:
        expected = f"expected {RATES[0]:g} to {RATES[1]:g} frames/s"
        raise ClipError(f"{name}: its rate is {str(rate)[:40]}, {expected}; is it a frame time?")
    if not 2 <= count <= MAX_FRAMES or count > LONGEST * value:
        most = f"{LONGEST:.0f} s and {MAX_FRAMES} frames at most; cut it"
        raise ClipError(f"{name}: {count} frames at {value:g} a second, expected 2 or more, {most}")
    return value


def check_numbers(values: np.ndarray, label: str, joints: tuple[str, ...] = ()) -> np.ndarray:
    """`values` (T, D) or (T, J, D) as float64; ClipError names the frame, and the joint where
    `joints` are given.
    """
    if values.dtype.kind not in "fiu":
        raise ClipError(f"{label}: holds {values.dtype}, expected numbers")
    with np.errstate(all="ignore"):  # values beyond float64 are found below
        values = values.astype(np.float64)
    bad = np.argwhere(~(np.abs(values) < LARGEST))
    if not len(bad):
        return values
    frame, column = bad[0][:2]
    place = joints[column] if joints else f"column {column}"
    value = values[tuple(bad[0])]
    many = len(np.unique(bad[:, 0]))
    expected = f"expected a finite number below {LARGEST:g}; {many} of {len(values)} frames are so"
    raise ClipError(f"{label}: frame {frame} {place} is {value}, {expected}")


def unit_quaternions(q: np.ndarray, label: str, joints: tuple[str, ...]) -> np.ndarray:
    """`q` (T, J, 4) at length 1; ClipError names the frame and joint of one that is not near it."""
    off = np.abs(np.linalg.norm(q, axis=-1) - 1)
    if (bad := np.argwhere(off > UNIT_TOLERANCE)).size:
        frame, joint = bad[0]
        length = np.linalg.norm(q[frame, joint])
        problem = f"the quaternion of {joints[joint]} has length {length:.3f}"
        many = f"{len(np.unique(bad[:, 0]))} of {len(q)} frames are so"
        raise ClipError(f"{label}: frame {frame}: {problem}, expected 1; {many}, normalize them")
    return normalize(q)


def spread_arms(turns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rotations from a zero pose of hanging arms -> from one of spread arms."""
    spread = dict(turns)
    for body, angle in ARMS.items():
        off = from_axis_angle("x", np.array(angle))
        turned = multiply(turns[body], np.broadcast_to(off, turns[body].shape))
        if body.endswith("lower_arm"):  # its parent's axes are also turned
            turned = multiply(np.broadcast_to(conjugate(off), turned.shape), turned)
        spread[body] = turned
    return spread


def make_clip(frames: HumanoidFrames, skeleton: Skeleton) -> MotionClip:
    """`frames` on `skeleton`; ClipError where its joints are not a humanoid's."""
    wanted = {joint.body for joint in skeleton.joints}
    if lacking := sorted(set(frames.turns) - set(skeleton.bodies)):
        raise ClipError(f"{frames.name}: needs a humanoid; {skeleton.name!r} lacks {lacking[0]}")
    if missing := sorted(wanted - set(frames.turns)):
        raise ClipError(f"{frames.name}: has no rotations of {', '.join(missing)[:200]}")
    joint_rot: dict[str, np.ndarray] = {}
    warnings = list(frames.warnings)
    for joint in skeleton.joints:
        q = continuous(frames.turns[joint.body])
        if len(joint.axes) == 1:
            q, line = _about(joint.axes, q, f"{frames.name}: {joint.body}")
            warnings += line
        joint_rot[joint.body] = q
    return MotionClip(
        name=frames.name,
        fps=frames.rate,
        root_pos=frames.root_pos,
        root_rot=continuous(frames.root_rot),
        joint_rot=joint_rot,
        skeleton=skeleton,
        warnings=(*warnings, *_doubts(frames)),
    )


def check_bones(bones: Mapping[str, np.ndarray], skeleton: Skeleton, label: str) -> None:
    """ClipError where a bone is not as long as ours, or on the other side.

    `bones` are vectors (3,) from a body's parent to it, in the parent's axes.
    """
    for body, ours in zip(skeleton.bodies[1:], skeleton.offsets[1:], strict=True):
        length = float(np.linalg.norm(bones[body]))
        if not abs(length - np.linalg.norm(ours)) <= SAME_SIZE:
            expected = f"expected {np.linalg.norm(ours):.3f}; is it in meters, is it another body?"
            raise ClipError(f"{label}: {body} is {length:.3f} m from its parent, {expected}")
        if body in SIDED and bones[body][1] * ours[1] < 0:
            problem = f"{body} is at y = {bones[body][1]:.3f} m of its parent"
            raise ClipError(f"{label}: {problem}; are left and right exchanged?")


def _about(axis: str, q: np.ndarray, label: str) -> tuple[np.ndarray, list[str]]:
    """The twist of `q` about one axis, and a line where the remainder is more than OFF_AXIS."""
    twist = np.zeros_like(q)
    twist[:, 0] = q[:, 0]
    twist[:, 1 + AXIS[axis]] = q[:, 1 + AXIS[axis]]
    twist /= np.maximum(np.linalg.norm(twist, axis=-1, keepdims=True), 1e-12)
    rest = np.linalg.norm(log(multiply(q, conjugate(twist))), axis=-1)
    if rest.max() <= OFF_AXIS:
        return twist, []
    frame = int(rest.argmax())
    turned = f"turns {np.degrees(rest[frame]):.0f} degrees about other axes than its hinge's"
    return twist, [f"{label} {turned} in frame {frame}: left out"]


def _doubts(frames: HumanoidFrames) -> tuple[str, ...]:
    """Signs of another unit of length or another up axis."""
    lines = []
    height = float(np.median(frames.root_pos[:, 2]))
    way = float(np.linalg.norm(np.ptp(frames.root_pos, axis=0)))
    lying = float(np.median(up_axis(frames.root_rot)[:, 2])) < LYING
    upright = next((word for word in UPRIGHT_NAMES if word in frames.name.lower()), None)
    if height > TALLEST:
        lines.append(f"its root is {height:.1f} m high in half of its frames; is it in cm?")
    if 0 < height < SMALLEST and way < SMALLEST and not lying:
        lines.append(f"its root is {height:.4f} m high in half of its frames; is it in 100 m?")
    if upright and lying:
        lines.append(f"called {upright}, but it lies or hangs; is another axis than z up?")
    return tuple(f"{frames.name}: {line}" for line in lines)
