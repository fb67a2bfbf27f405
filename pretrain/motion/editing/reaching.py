"""Authors a reaching hand from a stand: solves legs and arm and keeps the center of mass over the
feet."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pretrain.characters import rotations
from pretrain.motion.balance import center_of_mass
from pretrain.motion.clip import ClipError, MotionClip, continuous
from pretrain.motion.editing.balancing import move_over_feet
from pretrain.motion.editing.time import smoothstep
from pretrain.motion.poses import with_hand

LEAN_SHARE = 0.5  # the trunk's share of the lowering; the remainder is the knees'
MAX_SUNK = 0.45  # m that the hips sink at most
MAX_LEAN = 1.2  # rad of the trunk
HANGING = 0.34  # m below the shoulder, of a hand held at ease before the body
TRUNK = 0.48  # m from the hips to the shoulders
ARCH = 0.12  # m of the hand's path before the straight line, half-way
EARLIEST = 0.3  # s


@dataclass(frozen=True)
class Target:
    """The target of a hand, and its timing."""

    hand: str  # right, left or both
    height: float  # m above the ground
    ahead: float  # m before the hips
    aside: float  # m outwards of the shoulder
    go: float  # s to get there, and to come back
    stay: float  # s


def reach(clip: MotionClip, target: Target) -> MotionClip:
    """`clip`, a stand at least as long as the reach, in which a hand moves to `target`, stays and
    returns. ClipError where it is shorter."""
    needed = EARLIEST + 2 * target.go + target.stay
    if clip.duration < needed - 0.5 / clip.fps:
        parts = f"{EARLIEST:g} s, twice go {target.go:g} s and stay {target.stay:g} s"
        lasts = f"it lasts {clip.duration:.2f} s"
        raise ClipError(f"{clip.name}: reach needs {needed:.2f} s ({parts}), but {lasts}")
    times = np.arange(len(clip)) / clip.fps
    start = max(EARLIEST, (clip.duration - 2 * target.go - target.stay) / 2)
    there = np.clip((times - start) / target.go, 0, 1)
    back = np.clip((start + 2 * target.go + target.stay - times) / target.go, 0, 1)
    share = smoothstep(there) * smoothstep(back)
    bent = _bend(clip, target, share)
    for side in ("right", "left") if target.hand == "both" else (target.hand,):
        bent = _move_hand(clip, bent, (side, target), share)
    return bent


def _bend(clip: MotionClip, target: Target, share: np.ndarray) -> MotionClip:
    """Hips lowered and trunk leaned forward as the height requires; the hips move back until the
    center of mass is in place."""
    lean, sink = _lower_by(clip, target)
    facing = rotations.heading_direction(clip.root_rot)
    left = np.stack([-facing[:, 1], facing[:, 0], np.zeros(len(clip))], -1)
    half = (0.25 * lean * share)[:, None]  # half of the lean is the pelvis', half the chest's
    pitch = np.concatenate([np.cos(half), np.sin(half) * left], -1)
    turns = {"torso": 0.5 * lean * share, "head": -0.25 * lean * share}
    joint_rot = dict(clip.joint_rot)
    for body, angle in turns.items():
        turn = rotations.from_axis_angle("y", angle)
        joint_rot[body] = continuous(rotations.multiply(turn, joint_rot[body]))
    down = np.array([0.0, 0.0, -sink]) * share[:, None]
    root_rot = continuous(rotations.multiply(pitch, clip.root_rot))
    bent = replace(clip, root_pos=clip.root_pos + down, root_rot=root_rot, joint_rot=joint_rot)
    return move_over_feet(bent, center_of_mass(clip)[:, :2], feet=clip)


def _lower_by(clip: MotionClip, target: Target) -> tuple[float, float]:
    """Lean (rad) of the trunk and lowering (m) of the hips for a hand to reach the height."""
    positions, _ = clip.world_poses
    shoulder = positions[0, clip.skeleton.bodies.index("right_upper_arm"), 2]
    below = max(0.0, float(shoulder) - HANGING - target.height)
    lean = np.arccos(np.clip(1 - LEAN_SHARE * below / TRUNK, 0.0, 1.0))
    return min(MAX_LEAN, float(lean)), min(MAX_SUNK, (1 - LEAN_SHARE) * below)


def _move_hand(
    clip: MotionClip, bent: MotionClip, which: tuple[str, Target], share: np.ndarray
) -> MotionClip:
    """`bent` with a hand on its path from the hanging arm to the target and back; the elbow stays
    below."""
    side, target = which
    skeleton = clip.skeleton
    facing = rotations.heading_direction(clip.root_rot)[0]
    ahead = np.array([facing[0], facing[1], 0.0])
    left = np.array([-facing[1], facing[0], 0.0])
    sign = 1.0 if side == "left" else -1.0
    upper = skeleton.bodies.index(f"{side}_upper_arm")
    hanging, turns = bent.world_poses
    shoulder = float(clip.world_poses[0][0, upper] @ left)
    hips = float(clip.root_pos[0] @ ahead)
    goal = (hips + target.ahead) * ahead + (shoulder + sign * target.aside) * left
    goal = goal + np.array([0.0, 0.0, target.height])
    hand = hanging[:, skeleton.bodies.index(f"{side}_hand")]
    path = hand + share[:, None] * (goal - hand) + (4 * ARCH * share * (1 - share))[:, None] * ahead
    hinge = rotations.rotate(turns[:, upper], np.array([0, 0, -sign]))
    plane = hinge * (1 - share)[:, None] - left * share[:, None]
    return with_hand(
        bent, f"{side}_hand", path, plane / np.linalg.norm(plane, axis=-1, keepdims=True)
    )
