"""Authors steps from a stand: plans the feet, moves the body as a pendulum over them and solves the
legs.

For motions of which there is no free capture, as a turn on the spot. The center of mass moves as
that of a linear inverted pendulum (the cart-table model of Kajita et al. 2003) whose zero-moment
point goes from foot to foot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.characters import rotations
from pretrain.motion.balance import GRAVITY, center_of_mass
from pretrain.motion.clip import MotionClip, continuous
from pretrain.motion.editing.footsteps import Footsteps, Gait, plan_footsteps
from pretrain.motion.editing.time import frames, homed
from pretrain.motion.poses import with_feet
from pretrain.motion.soles import sole_corners
from pretrain.motion.stance import lowered, smooth

CROUCH = 0.015  # m of the root below the stand, so that the legs reach
ARM_SWING = 0.9  # rad of a shoulder for each meter that the opposite foot is ahead
SOLE = 0.035  # m of the center of mass before the ankles
BALANCINGS = (
    4  # corrections of the root: each leaves a third of the gap, the legs' share of the mass
)
LEAD = 0.12  # s by which chest and head turn before the hips


def step(clip: MotionClip, gait: Gait) -> MotionClip:
    """From the first frame of `clip`, which stands, into `gait`, and to a stand again."""
    feet = plan_footsteps(gait, clip.fps)
    stand = homed(frames(clip, np.zeros(len(feet.pos), dtype=int)))
    heading = smooth(feet.yaw.mean(1, keepdims=True), 0.12 * clip.fps)[:, 0]
    turning = _turned(stand, heading)
    swinging = _swung(turning, feet, heading)
    weight = _weight_path(swinging, feet)
    clip = replace(swinging, root_pos=_root_path(swinging, feet, weight))
    for _ in range(BALANCINGS):
        clip = _stepped(clip, stand, feet)
        gap = weight - center_of_mass(clip)[:, :2]
        clip = replace(clip, root_pos=clip.root_pos + np.pad(gap, ((0, 0), (0, 1))))
    return _stepped(clip, stand, feet)


def _turned(stand: MotionClip, heading: np.ndarray) -> MotionClip:
    """The body turned to `heading` (T,) rad, chest and head before it."""
    times = np.arange(len(heading))
    ahead = np.interp(times + LEAD * stand.fps, times, heading) - heading
    turns = {
        "torso": rotations.from_axis_angle("z", ahead),
        "head": rotations.from_axis_angle("z", 0.5 * ahead),
    }
    joint_rot = dict(stand.joint_rot)
    for body, turn in turns.items():
        joint_rot[body] = continuous(rotations.multiply(turn, joint_rot[body]))
    root_rot = rotations.multiply(rotations.from_axis_angle("z", heading), stand.root_rot)
    return replace(stand, root_rot=continuous(root_rot), joint_rot=joint_rot)


def _swung(clip: MotionClip, feet: Footsteps, heading: np.ndarray) -> MotionClip:
    """Arms against legs: each shoulder follows the foot of the other side."""
    ahead = np.stack([np.cos(heading), np.sin(heading)], -1)
    left_ahead = ((feet.pos[:, 1, :2] - feet.pos[:, 0, :2]) * ahead).sum(-1, keepdims=True)
    angle = -ARM_SWING * smooth(left_ahead, 0.08 * clip.fps)[:, 0]
    joint_rot = dict(clip.joint_rot)
    for arm, sign in (("right_upper_arm", 1.0), ("left_upper_arm", -1.0)):
        swing = rotations.from_axis_angle("y", sign * angle)
        joint_rot[arm] = continuous(rotations.multiply(swing, joint_rot[arm]))
    return replace(clip, joint_rot=joint_rot)


def _weight_path(clip: MotionClip, feet: Footsteps) -> np.ndarray:
    """Path of the center of mass as a pendulum over the feet, (T, 2) m."""
    ahead = np.stack([np.cos(feet.yaw), np.sin(feet.yaw)], -1)
    middle = feet.pos[..., :2] + SOLE * ahead
    weight = feet.support / feet.support.sum(1, keepdims=True)
    zmp = smooth((middle * weight[..., None]).sum(1), 0.04 * clip.fps)
    return _pendulum(zmp, float(center_of_mass(clip)[0, 2]), clip.fps)


def _root_path(clip: MotionClip, feet: Footsteps, weight: np.ndarray) -> np.ndarray:
    """Root positions (T, 3) m that put the center of mass near `weight` (T, 2): legs also move
    it."""
    still = clip.root_pos * np.array([0.0, 0.0, 1.0])
    offset = center_of_mass(replace(clip, root_pos=still))[:, :2]
    moving = np.ptp(feet.support, axis=1) > 0
    between = np.maximum.accumulate(moving) & np.maximum.accumulate(moving[::-1])[::-1]
    low = CROUCH * smooth(between.astype(float)[:, None], 0.2 * clip.fps)
    return np.concatenate([weight - offset, still[:, 2:] - low], -1)


def _pendulum(zmp: np.ndarray, height: float, fps: float) -> np.ndarray:
    """c with c - height / g * c'' = zmp, at rest at both ends. (T, 2) -> (T, 2)."""
    count = len(zmp)
    stiffness = height / GRAVITY * fps**2
    neighbors = np.eye(count, k=1) + np.eye(count, k=-1)
    matrix = np.diag(np.full(count, 1 + 2 * stiffness)) - stiffness * neighbors
    matrix[0, 0] = matrix[-1, -1] = 1 + stiffness
    return np.linalg.solve(matrix, zmp)


def _stepped(clip: MotionClip, stand: MotionClip, feet: Footsteps) -> MotionClip:
    """`clip` with its feet on the plan, turned out as in `stand`."""
    skeleton = clip.skeleton
    _, turns = stand.world_poses
    ankles = {}
    soles = {}
    for i, foot in enumerate(skeleton.feet):
        facing = rotations.heading_direction(turns[:, skeleton.bodies.index(foot)])
        out = np.arctan2(facing[:, 1], facing[:, 0])
        level = rotations.from_axis_angle("z", feet.yaw[:, i] + out)
        soles[foot] = rotations.multiply(level, rotations.from_axis_angle("y", feet.pitch[:, i]))
        corners = rotations.rotate(soles[foot][:, None], sole_corners(skeleton, foot))
        height = -corners[..., 2].min(-1)
        ankles[foot] = feet.pos[:, i] + np.stack([0 * height, 0 * height, height], -1)
    targets = np.stack([ankles[foot] for foot in skeleton.feet], 1)
    return with_feet(lowered(clip, skeleton.feet, targets, feet.support > 0), ankles, soles)
