"""Steps authored from a stand: feet are planned, the body follows as a pendulum over them, legs by inverse kinematics.

No capture: for what no free clip shows, as a turn on the spot. The centre of mass is that of a linear inverted pendulum
(Kajita et al. 2003) whose zero-moment point walks from foot to foot, so that the weight is where it must be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pretrain.characters import rotations
from pretrain.motion.balance import GRAVITY, centre_of_mass
from pretrain.motion.clip import MotionClip, continuous
from pretrain.motion.editing.time import homed, smoothstep
from pretrain.motion.poses import with_feet, world_poses

SWING_SHARE = 0.8  # of a step's time, in which its foot is in the air
LIFT = 0.07  # m
RAMP = 0.5  # s, in which a command comes and goes
WAIT = 0.6  # s of standing before the first and after the last step
CROUCH = 0.015  # m that the root is lower than in the stand, so that legs have reach
ARM_SWING = 0.9  # rad of a shoulder for each metre that the opposite foot is ahead
SOLE = 0.035  # m that the middle of the weight is before the ankles
LEAD = 0.12  # s by which chest and head turn before the hips


@dataclass(frozen=True)
class Gait:
    """A command to a walker on the spot or on its way: velocities in its own frame, for a time."""

    ahead: float = 0.0  # m/s
    aside: float = 0.0  # m/s, to the left
    turn: float = 0.0  # rad/s, to the left
    seconds: float = 4.0  # at the full command
    step: float = 0.4  # s from one foot's landing to the other's
    width: float = 0.2  # m between the feet


def step(clip: MotionClip, gait: Gait) -> MotionClip:
    """From the first frame of `clip`, which stands, into `gait`, and to a stand again."""
    stand = homed(
        replace(
            clip,
            root_pos=clip.root_pos[:1],
            root_rot=clip.root_rot[:1],
            joint_rot={body: q[:1] for body, q in clip.joint_rot.items()},
        )
    )
    times, path = _body_path(gait, clip.fps)
    feet = _Feet(gait, times, path)
    pos, yaw, support = feet.tracks()
    return _posed(stand, gait, (pos, yaw, support), clip.fps)


def _body_path(gait: Gait, fps: float) -> tuple[np.ndarray, np.ndarray]:
    """Times (T,) s and the commanded place and heading (T, 3) of the body."""
    whole = 2 * WAIT + gait.seconds + 2 * RAMP + 3 * gait.step
    times = np.arange(round(whole * fps) + 1) / fps
    since = np.clip((times - WAIT) / RAMP, 0, 1)
    until = np.clip((WAIT + 2 * RAMP + gait.seconds - times) / RAMP, 0, 1)
    share = smoothstep(since) * smoothstep(until)
    heading = np.cumsum(gait.turn * share) / fps
    ahead = np.stack([np.cos(heading), np.sin(heading)], -1)
    aside = np.stack([-np.sin(heading), np.cos(heading)], -1)
    place = np.cumsum((gait.ahead * ahead + gait.aside * aside) * share[:, None], axis=0) / fps
    return times, np.concatenate([place, heading[:, None]], -1)


@dataclass(frozen=True)
class _Feet:
    gait: Gait
    times: np.ndarray
    path: np.ndarray

    def place(self, side: int, time: float) -> np.ndarray:
        """Where foot `side` (0 right, 1 left) belongs under the body at `time`: x, y, yaw."""
        at = np.array([np.interp(time, self.times, column) for column in self.path.T])
        off = (side - 0.5) * self.gait.width
        return at + np.array([-np.sin(at[2]) * off, np.cos(at[2]) * off, 0.0])

    def tracks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions (T, 2, 3) m with z the lift, yaws (T, 2), and each foot's share of the weight (T, 2)."""
        gait = self.gait
        pos = np.zeros((len(self.times), 2, 3))
        yaw = np.zeros((len(self.times), 2))
        swings = np.zeros((len(self.times), 2))
        now = [self.place(side, 0.0) for side in (0, 1)]
        for side in (0, 1):
            pos[:, side, :2] = now[side][:2]
            yaw[:, side] = now[side][2]
        leader = 1 if (gait.aside > 0 or gait.turn > 0) else 0
        count = round((gait.seconds + 2 * RAMP) / gait.step) + 3
        for i in range(count):
            side = (leader + i) % 2
            start = WAIT + i * gait.step
            swing = SWING_SHARE * gait.step
            target = self.place(side, start + swing + gait.step - swing / 2)
            s = np.clip((self.times - start) / swing, 0, 1)
            share = s**3 * (10 - 15 * s + 6 * s * s)
            later = self.times > start
            blend = share[later, None]
            pos[later, side, :2] = now[side][:2] * (1 - blend) + target[:2] * blend
            yaw[later, side] = now[side][2] * (1 - blend[:, 0]) + target[2] * blend[:, 0]
            moved = float(np.linalg.norm(target[:2] - now[side][:2])) + 0.2 * abs(target[2] - now[side][2])
            pos[:, side, 2] += LIFT * min(1.0, moved / 0.1) * np.sin(np.pi * s) ** 1.5
            swings[:, side] = np.maximum(swings[:, side], (s > 0) & (s < 1))
            now[side] = target
        return pos, yaw, 1 - swings


def _posed(stand: MotionClip, gait: Gait, tracks: tuple[np.ndarray, np.ndarray, np.ndarray], fps: float) -> MotionClip:
    """The body over its feet."""
    pos, yaw, support = tracks
    frames = len(pos)
    skeleton = stand.skeleton
    held = _held(stand, frames)
    heading = _gaussian(yaw.mean(1), 0.12 * fps)
    ahead = np.interp(np.arange(frames) + LEAD * fps, np.arange(frames), heading)
    lead = rotations.from_axis_angle("z", ahead - heading)
    half = rotations.from_axis_angle("z", 0.5 * (ahead - heading))
    turn = rotations.from_axis_angle("z", heading)
    joint_rot = dict(held.joint_rot)
    joint_rot["torso"] = continuous(rotations.multiply(lead, joint_rot["torso"]))
    joint_rot["head"] = continuous(rotations.multiply(half, joint_rot["head"]))
    posed = replace(held, root_rot=continuous(rotations.multiply(turn, held.root_rot)), joint_rot=joint_rot)
    posed = _swung(posed, pos, heading)
    clip = replace(posed, root_pos=_root_path(posed, pos, yaw, support))
    feet = skeleton.feet  # right, left
    ids = [skeleton.bodies.index(foot) for foot in feet]
    _, turns = world_poses(stand)
    flat = [
        rotations.multiply(rotations.from_axis_angle("z", yaw[:, i]), _level(turns[0, body])[None])
        for i, body in enumerate(ids)
    ]
    height = -min(z - radius for of, _, _, z, radius in skeleton.surface if of == ids[0])
    ankles = {foot: pos[:, i] + np.array([0, 0, height]) for i, foot in enumerate(feet)}
    return with_feet(clip, ankles, dict(zip(feet, flat, strict=True)))


def _root_path(clip: MotionClip, pos: np.ndarray, yaw: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Root positions (T, 3) m for which the centre of mass moves as a pendulum over the feet."""
    fps = clip.fps
    ahead = np.stack([np.cos(yaw), np.sin(yaw)], -1)
    mid = pos[..., :2] + SOLE * ahead
    weight = support / support.sum(1, keepdims=True)
    zmp = (mid * weight[..., None]).sum(1)
    zmp = np.stack([_gaussian(column, 0.04 * fps) for column in zmp.T], -1)
    height = float(centre_of_mass(clip)[0, 2])
    com = _pendulum(zmp, height, fps)
    root = clip.root_pos.copy()
    root[:, :2] = 0
    offset = centre_of_mass(replace(clip, root_pos=root))[:, :2]
    moving = (np.ptp(support, axis=1) > 0).astype(float)
    low = _gaussian(np.maximum.accumulate(moving) * np.maximum.accumulate(moving[::-1])[::-1], 0.2 * fps)
    return np.concatenate([com - offset, root[:, 2:] - CROUCH * low[:, None]], -1)


def _pendulum(zmp: np.ndarray, height: float, fps: float) -> np.ndarray:
    """c with c - height / g * c'' = zmp, at rest at both ends. (T, 2) -> (T, 2)."""
    frames = len(zmp)
    k = height / GRAVITY * fps**2
    matrix = np.diag(np.full(frames, 1 + 2 * k)) - k * (np.eye(frames, k=1) + np.eye(frames, k=-1))
    matrix[0, 0] = matrix[-1, -1] = 1 + k
    return np.linalg.solve(matrix, zmp)


def _swung(clip: MotionClip, pos: np.ndarray, heading: np.ndarray) -> MotionClip:
    """Arms against legs: each shoulder follows the foot of the other side."""
    ahead = np.stack([np.cos(heading), np.sin(heading)], -1)
    joint_rot = dict(clip.joint_rot)
    off = ((pos[:, 1, :2] - pos[:, 0, :2]) * ahead).sum(-1)  # left foot ahead of the right
    for arm, sign in (("right_upper_arm", 1.0), ("left_upper_arm", -1.0)):
        swing = rotations.from_axis_angle("y", -ARM_SWING * sign * _gaussian(off, 0.08 * clip.fps))
        joint_rot[arm] = continuous(rotations.multiply(swing, joint_rot[arm]))
    return replace(clip, joint_rot=joint_rot)


def _held(stand: MotionClip, frames: int) -> MotionClip:
    """One pose (1 frame), `frames` times."""

    def again(x: np.ndarray) -> np.ndarray:
        return np.repeat(x, frames, axis=0)

    joint_rot = {body: again(q) for body, q in stand.joint_rot.items()}
    return replace(stand, root_pos=again(stand.root_pos), root_rot=again(stand.root_rot), joint_rot=joint_rot)


def _level(q: np.ndarray) -> np.ndarray:
    """The turn about the vertical in a rotation, (4,) wxyz."""
    facing = rotations.facing(q)
    return rotations.from_axis_angle("z", np.asarray(np.arctan2(facing[1], facing[0])))


def _gaussian(x: np.ndarray, sigma: float) -> np.ndarray:
    """Mean over time, (T,), `sigma` in frames."""
    reach = int(np.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, reach, mode="edge"), 2 * reach + 1) @ (
        weights / weights.sum()
    )
