"""Edits of a clip along its time: each takes a MotionClip and returns another. Numpy only, pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pretrain.characters import rotations
from pretrain.motion.clip import ClipError, MotionClip, continuous
from pretrain.motion.stance import turned


def frames(clip: MotionClip, index: np.ndarray) -> MotionClip:
    """The frames `index` (N,) of `clip`, in that order."""
    return mapped(clip, lambda x: x[index])


def mapped(clip: MotionClip, change: Callable[[np.ndarray], np.ndarray]) -> MotionClip:
    """`change` over root positions (T, 3) and every track of quaternions (T, 4), whose signs stay
    continuous.
    """
    return replace(
        clip,
        root_pos=change(clip.root_pos),
        root_rot=continuous(change(clip.root_rot)),
        joint_rot={body: continuous(change(q)) for body, q in clip.joint_rot.items()},
    )


def trim(clip: MotionClip, start: float, stop: float) -> MotionClip:
    """From `start` to `stop`, s."""
    first = round(start * clip.fps)
    last = round(stop * clip.fps)
    if not 0 <= first < last < len(clip):
        raise ClipError(
            f"{clip.name}: trim from {start:g} to {stop:g} s, but it lasts {clip.duration:.2f} s"
        )
    return frames(clip, np.arange(first, last + 1))


def reverse(clip: MotionClip) -> MotionClip:
    """Played from its end to its beginning."""
    return frames(clip, np.arange(len(clip))[::-1])


def speed(clip: MotionClip, factor: float) -> MotionClip:
    """`factor` times as fast, at the same rate."""
    return replace(replace(clip, fps=clip.fps * factor).resampled(clip.fps), fps=clip.fps)


def hold(clip: MotionClip, at: float, seconds: float) -> MotionClip:
    """The frame at `at` s, still for `seconds`."""
    frame = round(at * clip.fps)
    if not 0 <= frame < len(clip):
        raise ClipError(f"{clip.name}: hold at {at:g} s, but it lasts {clip.duration:.2f} s")
    return frames(clip, np.full(round(seconds * clip.fps) + 1, frame))


def homed(clip: MotionClip) -> MotionClip:
    """Moved and turned on the ground so that its first frame stands at the origin and faces x."""
    facing = rotations.heading_direction(clip.root_rot[0])
    clip = replace(clip, root_pos=clip.root_pos - clip.root_pos[0] * np.array([1.0, 1.0, 0.0]))
    return turned(clip, -float(np.arctan2(facing[1], facing[0])))


def follow(clip: MotionClip, pos: np.ndarray, facing: np.ndarray) -> MotionClip:
    """`clip` from the ground point `pos` (2,) on, its first frame facing `facing` (2,)."""
    clip = turned(homed(clip), float(np.arctan2(facing[1], facing[0])))
    return replace(clip, root_pos=clip.root_pos + np.array([pos[0], pos[1], 0.0]))


def splice(first: MotionClip, second: MotionClip, blend: float) -> MotionClip:
    """`first`, faded over its last `blend` s into `second`, which continues its position and
    heading.

    Both keep moving during the fade: heights, rotations and the paths' velocities are mixed."""
    if abs(first.fps - second.fps) > 1e-6:
        raise ClipError(
            f"{first.name} has {first.fps:g} frames/s, {second.name} {second.fps:g}: resample one"
        )
    width = round(blend * first.fps)
    if not 2 <= width < min(len(first), len(second)):
        raise ClipError(
            f"{first.name}: no fade of {blend:g} s between clips of {len(first)} and "
            f"{len(second)} frames"
        )
    start = len(first) - width
    facing = rotations.heading_direction(first.root_rot[start])
    second = follow(second, first.root_pos[start, :2], facing)
    tail = frames(first, np.arange(start, len(first)))
    head = frames(second, np.arange(width))
    share = smoothstep(np.linspace(0, 1, width))
    middle = mixed(tail, head, share)
    path = _mixed_path(tail.root_pos[:, :2], head.root_pos[:, :2], share)
    middle = replace(middle, root_pos=np.concatenate([path, middle.root_pos[:, 2:]], -1))
    rest = frames(second, np.arange(width, len(second)))
    shift = path[-1] + (second.root_pos[width, :2] - head.root_pos[-1, :2]) - rest.root_pos[0, :2]
    rest = replace(rest, root_pos=rest.root_pos + np.array([shift[0], shift[1], 0.0]))
    return joined([frames(first, np.arange(start)), middle, rest])


def _mixed_path(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    """A path (T, 2) whose steps are mixed from those of a and b."""
    between = (share[1:] + share[:-1])[:, None] / 2
    steps = np.diff(a, axis=0) * (1 - between) + np.diff(b, axis=0) * between
    return a[0] + np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])


def mixed(a: MotionClip, b: MotionClip, share: np.ndarray) -> MotionClip:
    """From a (share 0) to b (share 1), frame by frame, (T,): positions on lines, rotations on the
    shorter arcs.
    """
    joint_rot = {
        body: continuous(rotations.slerp(q, b.joint_rot[body], share))
        for body, q in a.joint_rot.items()
    }
    return replace(
        a,
        root_pos=a.root_pos * (1 - share)[:, None] + b.root_pos * share[:, None],
        root_rot=continuous(rotations.slerp(a.root_rot, b.root_rot, share)),
        joint_rot=joint_rot,
    )


def joined(clips: list[MotionClip]) -> MotionClip:
    """One after the other, unchanged."""
    first = clips[0]
    return replace(
        first,
        root_pos=np.concatenate([clip.root_pos for clip in clips]),
        root_rot=continuous(np.concatenate([clip.root_rot for clip in clips])),
        joint_rot={
            body: continuous(np.concatenate([clip.joint_rot[body] for clip in clips]))
            for body in first.joint_rot
        },
    )


def repeat(clip: MotionClip, times: int, blend: float) -> MotionClip:
    """`times` in a row, each from the end of the last, with a fade of `blend` s.

    The clip is cut in its later half, where it is most similar to its beginning: a walk after whole
    cycles."""
    width = round(blend * clip.fps)
    shape = shape_of(clip)
    earliest = len(clip) // 2
    latest = len(clip) - width - 1
    if latest <= earliest:
        raise ClipError(
            f"{clip.name}: {clip.duration:.2f} s are too short to repeat with a fade of {blend:g} s"
        )
    likeness = np.linalg.norm(shape[earliest:latest] - shape[0], axis=-1)
    match = earliest + int(likeness.argmin())
    cycle = frames(clip, np.arange(match + width))  # the fade begins at the match and at frame 0
    repeated = cycle
    for _ in range(times - 1):
        repeated = splice(repeated, cycle, blend)
    return repeated


def shape_of(clip: MotionClip) -> np.ndarray:
    """Features of pose and motion, (T, 2 B 3): bodies relative to the root in m, and a tenth of
    their m/s."""
    positions, _ = clip.world_poses
    facing = rotations.heading_direction(clip.root_rot)[:, None]
    bodies = rotations.to_heading_frame(facing, positions - clip.root_pos[:, None])
    velocities = np.gradient(bodies, 1 / clip.fps, axis=0)
    return np.concatenate([bodies, 0.1 * velocities], -1).reshape(len(clip), -1)


def smoothstep(x: np.ndarray) -> np.ndarray:
    """From 0 to 1 with level ends."""
    return x * x * (3 - 2 * x)
