"""Spatial edits of a clip: each takes a MotionClip and returns another. Numpy only, pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.characters import rotations
from pretrain.characters.kinematics import ball_rotations, joint_rotations
from pretrain.motion.balance import GRAVITY
from pretrain.motion.clip import ClipError, MotionClip, continuous
from pretrain.motion.editing.time import smoothstep
from pretrain.motion.poses import foot_poses, with_feet

MAX_CLAMPED = 0.35  # rad past a hinge's range


def arc(clip: MotionClip, rate: float) -> MotionClip:
    """Turn the path and the body at `rate` (rad/s); steps keep their length.

    The body leans inwards, about the ground below it, as its speed in that arc requires."""
    pace = np.linalg.norm(clip.root_pos[-1, :2] - clip.root_pos[0, :2]) / clip.duration
    lean = np.arctan(pace * rate / GRAVITY)
    fade = smoothstep(np.clip(np.arange(len(clip)) / (0.3 * clip.fps), 0, 1))
    course = (clip.root_pos[-1] - clip.root_pos[0])[:2]
    ahead = course / max(float(np.linalg.norm(course)), 1e-9)
    half = (-0.5 * lean * fade)[:, None]
    roll = np.concatenate([np.cos(half), np.sin(half) * np.array([ahead[0], ahead[1], 0.0])], -1)
    up = clip.root_pos * np.array([0.0, 0.0, 1.0])
    clip = replace(
        clip,
        root_pos=clip.root_pos - up + rotations.rotate(roll, up),
        root_rot=continuous(rotations.multiply(roll, clip.root_rot)),
    )
    heading = rate * np.arange(len(clip)) / clip.fps
    turn = rotations.from_axis_angle("z", heading)
    between = rotations.from_axis_angle("z", (heading[1:] + heading[:-1]) / 2)
    steps = rotations.rotate(between, np.diff(clip.root_pos, axis=0))
    path = clip.root_pos[:1] + np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    return replace(
        clip, root_pos=path, root_rot=continuous(rotations.multiply(turn, clip.root_rot))
    )


def stride(clip: MotionClip, factor: float) -> MotionClip:
    """Steps `factor` times as long, in the same time: scales the path and the feet's offsets ahead,
    not the heights.

    A run keeps its flight phases; the joints of a shorter step bend less."""
    facing = rotations.heading_direction(clip.root_rot)
    ankles, soles = foot_poses(clip)
    path = clip.root_pos.copy()
    path[:, :2] = path[0, :2] + factor * (path[:, :2] - path[0, :2])
    for foot, ankle in ankles.items():
        local = rotations.to_heading_frame(facing, ankle - clip.root_pos) * np.array(
            [factor, 1.0, 1.0]
        )
        ankles[foot] = path + rotations.from_heading_frame(facing, local)
    return with_feet(replace(clip, root_pos=path), ankles, soles)


def limited(clip: MotionClip) -> MotionClip:
    """Every hinge within its range. ClipError where one is past it by more than MAX_CLAMPED."""
    skeleton = clip.skeleton
    angles = clip.joint_pos
    within = np.clip(angles, skeleton.lower, skeleton.upper)
    past = np.abs(angles - within)
    if past.max() > MAX_CLAMPED:
        frame, hinge = np.unravel_index(int(past.argmax()), past.shape)
        problem = (
            f"hinge {skeleton.hinges[hinge]} is {past[frame, hinge]:.2f} rad past its "
            f"range in frame {frame}"
        )
        raise ClipError(f"{clip.name}: {problem}; limit takes {MAX_CLAMPED:g} at most")
    turns = joint_rotations(skeleton, within, ball_rotations(skeleton, within))
    joint_rot = {body: continuous(turns[skeleton.bodies.index(body)]) for body in clip.joint_rot}
    return replace(clip, joint_rot=joint_rot)


def sway(clip: MotionClip, size: float) -> MotionClip:
    """A stand that sways by `size` m over its feet, and breathes: slow sines of different periods.

    Periods of 2.9 to 6.7 s are within the slow band of quiet standing, below 0.5 Hz.
    """
    times = np.arange(len(clip)) / clip.fps
    fade = smoothstep(np.clip(times / 0.7, 0, 1))
    waves = [
        np.sin(2 * np.pi * times / period + phase)
        for period, phase in ((6.7, 0.0), (4.1, 1.0), (2.9, 2.5))
    ]
    ahead = size * fade * (0.6 * waves[0] + 0.3 * waves[1] + 0.2 * waves[2])
    aside = size * fade * (0.5 * waves[1] - 0.4 * waves[0])
    facing = rotations.heading_direction(clip.root_rot)
    moved = rotations.from_heading_frame(facing, np.stack([ahead, aside, 0 * ahead], -1))
    ankles, soles = foot_poses(clip)
    joint_rot = dict(clip.joint_rot)
    breath = rotations.from_axis_angle("y", 0.012 * fade * waves[2])
    joint_rot["torso"] = continuous(rotations.multiply(breath, joint_rot["torso"]))
    gaze = rotations.from_axis_angle("z", 0.08 * fade * waves[0])
    joint_rot["head"] = continuous(rotations.multiply(gaze, joint_rot["head"]))
    for body, sign in (("right_upper_arm", 1.0), ("left_upper_arm", -1.0)):
        hang = rotations.from_axis_angle("y", -0.03 * fade * (waves[1] + sign * waves[0]))
        joint_rot[body] = continuous(rotations.multiply(hang, joint_rot[body]))
    return with_feet(
        replace(clip, root_pos=clip.root_pos + moved, joint_rot=joint_rot), ankles, soles
    )


ARMS = ("right_upper_arm", "right_lower_arm", "left_upper_arm", "left_lower_arm")


def arms(clip: MotionClip, donor: MotionClip) -> MotionClip:
    """`clip` with the arms of `donor`, which is played forwards and backwards in turn."""
    there = np.arange(len(clip)) % max(1, 2 * (len(donor) - 1))
    index = np.minimum(there, 2 * (len(donor) - 1) - there)
    joint_rot = dict(clip.joint_rot) | {
        body: continuous(donor.joint_rot[body][index]) for body in ARMS
    }
    return replace(clip, joint_rot=joint_rot)
