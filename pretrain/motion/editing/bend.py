"""Edits of what a clip does in space: its path bent into an arc, a hand that reaches. Numpy only but for masses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from pretrain.characters import rotations
from pretrain.characters.kinematics import ball_rotations, joint_rotations
from pretrain.motion.balance import GRAVITY, centre_of_mass
from pretrain.motion.clip import ClipError, MotionClip, continuous
from pretrain.motion.editing.time import smoothstep
from pretrain.motion.poses import with_feet, with_hand, world_poses

HINGE = 0.5  # share of a reach's lowering that comes from bending forward; the rest from the knees
MOST_CLAMPED = 0.35  # rad past a hinge's range
DEEPEST = 0.45  # m that the hips sink at most


def arc(clip: MotionClip, rate: float) -> MotionClip:
    """The path and the body turned by `rate` (rad/s) more and more; steps keep their length.

    The body leans inwards, about the ground below it, by as much as its speed in that arc asks for.
    """
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
    return replace(clip, root_pos=path, root_rot=continuous(rotations.multiply(turn, clip.root_rot)))


def stride(clip: MotionClip, factor: float) -> MotionClip:
    """Steps `factor` times as long, in the same time: the way and what the feet are ahead or behind, not the heights.

    A run stays a run, whose flight falls as before; a joint of a shorter step bends less.
    """
    facing = rotations.facing(clip.root_rot)
    positions, turns = world_poses(clip)
    path = clip.root_pos.copy()
    path[:, :2] = path[0, :2] + factor * (path[:, :2] - path[0, :2])
    feet = clip.skeleton.feet
    ankles: dict[str, np.ndarray] = {}
    for foot in feet:
        place = positions[:, clip.skeleton.bodies.index(foot)] - clip.root_pos
        local = rotations.into_heading(facing, place) * np.array([factor, 1.0, 1.0])
        ankles[foot] = path + rotations.out_of_heading(facing, local)
    soles = {foot: turns[:, clip.skeleton.bodies.index(foot)] for foot in feet}
    return with_feet(replace(clip, root_pos=path), ankles, soles)


def limited(clip: MotionClip) -> MotionClip:
    """Every hinge within its range. ClipError where one is past it by more than a slip, for that is no pose to keep."""
    skeleton = clip.skeleton
    angles = clip.joint_pos()
    within = np.clip(angles, skeleton.lower, skeleton.upper)
    past = np.abs(angles - within)
    if past.max() > MOST_CLAMPED:
        frame, hinge = np.unravel_index(int(past.argmax()), past.shape)
        where = f"hinge {skeleton.hinges[hinge]} is {past[frame, hinge]:.2f} rad past its range in frame {frame}"
        raise ClipError(f"{clip.name}: {where}; limit takes {MOST_CLAMPED:g} at most")
    turns = joint_rotations(skeleton, within, ball_rotations(skeleton, within))
    joint_rot = {body: continuous(turns[skeleton.bodies.index(body)]) for body in clip.joint_rot}
    return replace(clip, joint_rot=joint_rot)


def sway(clip: MotionClip, size: float) -> MotionClip:
    """A stand that sways by `size` m over its feet, as people do, and breathes: slow sines that do not repeat soon.

    Periods of 2.9 to 6.7 s are within the slow band of quiet standing, below 0.5 Hz.
    """
    times = np.arange(len(clip)) / clip.fps
    fade = smoothstep(np.clip(times / 0.7, 0, 1))
    waves = [np.sin(2 * np.pi * times / period + phase) for period, phase in ((6.7, 0.0), (4.1, 1.0), (2.9, 2.5))]
    ahead = size * fade * (0.6 * waves[0] + 0.3 * waves[1] + 0.2 * waves[2])
    aside = size * fade * (0.5 * waves[1] - 0.4 * waves[0])
    facing = rotations.facing(clip.root_rot)
    moved = rotations.out_of_heading(facing, np.stack([ahead, aside, 0 * ahead], -1))
    positions, turns = world_poses(clip)
    joint_rot = dict(clip.joint_rot)
    breath = rotations.from_axis_angle("y", 0.012 * fade * waves[2])
    joint_rot["torso"] = continuous(rotations.multiply(breath, joint_rot["torso"]))
    gaze = rotations.from_axis_angle("z", 0.08 * fade * waves[0])
    joint_rot["head"] = continuous(rotations.multiply(gaze, joint_rot["head"]))
    for body, sign in (("right_upper_arm", 1.0), ("left_upper_arm", -1.0)):
        hang = rotations.from_axis_angle("y", -0.03 * fade * (waves[1] + sign * waves[0]))
        joint_rot[body] = continuous(rotations.multiply(hang, joint_rot[body]))
    feet = clip.skeleton.feet
    ids = {foot: clip.skeleton.bodies.index(foot) for foot in feet}
    swayed = replace(clip, root_pos=clip.root_pos + moved, joint_rot=joint_rot)
    return with_feet(swayed, {f: positions[:, i] for f, i in ids.items()}, {f: turns[:, i] for f, i in ids.items()})


ARMS = ("right_upper_arm", "right_lower_arm", "left_upper_arm", "left_lower_arm")


def arms(clip: MotionClip, other: MotionClip) -> MotionClip:
    """`clip` with the arms of `other`, which is played to and fro as long as needed."""
    there = np.arange(len(clip)) % max(1, 2 * (len(other) - 1))
    index = np.minimum(there, 2 * (len(other) - 1) - there)
    joint_rot = dict(clip.joint_rot) | {body: continuous(other.joint_rot[body][index]) for body in ARMS}
    return replace(clip, joint_rot=joint_rot)


class Reached(Protocol):
    """Where a hand goes, and in what time."""

    @property
    def hand(self) -> str: ...
    @property
    def height(self) -> float: ...
    @property
    def ahead(self) -> float: ...
    @property
    def aside(self) -> float: ...
    @property
    def go(self) -> float: ...
    @property
    def stay(self) -> float: ...


@dataclass(frozen=True)
class _Posture:
    """What the body does for a reach: hips lower by `sink` m, pelvis and chest pitch forward by `lean` rad each."""

    sink: float
    lean: float


def reach(clip: MotionClip, reached: Reached) -> MotionClip:
    """`clip` (a stand, longer than the reach) in which a hand goes to a point, stays and comes back.

    Feet stay where they are; the hips go back so that the centre of mass stays over the feet.
    """
    times = np.arange(len(clip)) / clip.fps
    start = max(0.3, (clip.duration - 2 * reached.go - reached.stay) / 2)
    there = np.clip((times - start) / reached.go, 0, 1)
    back = np.clip((start + 2 * reached.go + reached.stay - times) / reached.go, 0, 1)
    share = smoothstep(there) * smoothstep(back)
    posture = _posture(clip, reached)
    bent = _bent(clip, posture, share)
    hands = ("right", "left") if reached.hand == "both" else (reached.hand,)
    for side in hands:
        bent = _reaching(clip, bent, f"{side}_hand", reached, share)
    return bent


def _posture(clip: MotionClip, reached: Reached) -> _Posture:
    """Lean and sink that bring the shoulder within reach of the height."""
    positions, _ = world_poses(clip)
    shoulder = positions[0, clip.skeleton.bodies.index("right_upper_arm")]
    below = max(0.0, shoulder[2] - 0.42 - reached.height)  # lower than a hanging arm bent a little
    sink = min(DEEPEST, (1 - HINGE) * below)
    lean = min(1.2, np.arccos(np.clip(1 - HINGE * below / 0.48, 0.0, 1.0)))
    return _Posture(sink, 0.5 * lean)


def _bent(clip: MotionClip, posture: _Posture, share: np.ndarray) -> MotionClip:
    """Hips lowered, trunk leaned forward, feet where they were, weight over the feet."""
    positions, turns = world_poses(clip)
    facing = rotations.facing(clip.root_rot)
    left = np.stack([-facing[:, 1], facing[:, 0], np.zeros(len(clip))], -1)
    half = (0.5 * posture.lean * share)[:, None]
    pitch = np.concatenate([np.cos(half), np.sin(half) * left], -1)
    joint_rot = dict(clip.joint_rot)
    chest = rotations.from_axis_angle("y", posture.lean * share)
    joint_rot["torso"] = continuous(rotations.multiply(chest, joint_rot["torso"]))
    joint_rot["head"] = continuous(
        rotations.multiply(rotations.from_axis_angle("y", -0.5 * posture.lean * share), joint_rot["head"])
    )
    sunk = clip.root_pos - np.stack([0 * share, 0 * share, posture.sink * share], -1)
    bent = replace(
        clip, root_pos=sunk, root_rot=continuous(rotations.multiply(pitch, clip.root_rot)), joint_rot=joint_rot
    )
    feet = clip.skeleton.feet
    ids = [clip.skeleton.bodies.index(foot) for foot in feet]
    ankles = {foot: positions[:, body] for foot, body in zip(feet, ids, strict=True)}
    soles = {foot: turns[:, body] for foot, body in zip(feet, ids, strict=True)}
    goal = centre_of_mass(clip)[:, :2]
    for _ in range(4):
        bent = with_feet(bent, ankles, soles)
        off = goal - centre_of_mass(bent)[:, :2]
        bent = replace(bent, root_pos=bent.root_pos + np.pad(off, ((0, 0), (0, 1))))
    return with_feet(bent, ankles, soles)


def _reaching(clip: MotionClip, bent: MotionClip, hand: str, reached: Reached, share: np.ndarray) -> MotionClip:
    """`bent` with `hand` on its way from where the arm hangs to the point and back."""
    side = 1.0 if hand.startswith("left") else -1.0
    facing = rotations.facing(clip.root_rot)[0]
    ahead = np.array([facing[0], facing[1], 0.0])
    left = np.array([-facing[1], facing[0], 0.0])
    positions, _ = world_poses(clip)
    shoulder = positions[0, clip.skeleton.bodies.index(f"{hand[:-5]}_upper_arm")]
    across = float(shoulder @ left) + side * reached.aside
    goal = clip.root_pos[0] * np.array([1, 1, 0.0]) + ahead * reached.ahead + np.array([0, 0, reached.height])
    goal = goal + left * (across - float(goal @ left))
    hanging, turns = world_poses(bent)
    index = clip.skeleton.bodies.index(hand)
    # on an arc about the shoulder: between hanging and there, the hand passes in front of the body
    path = hanging[:, index] * (1 - share)[:, None] + goal * share[:, None]
    path = path + ahead * (0.12 * 4 * share * (1 - share))[:, None]
    upper = clip.skeleton.bodies.index(f"{hand[:-5]}_upper_arm")
    plane = rotations.rotate(turns[:, upper], np.array([0, 0, -side]))
    outwards = np.array([0, 0, 1.0]) * 0 - left * 1.0
    wanted = plane * (1 - share)[:, None] + outwards * share[:, None]
    return with_hand(bent, hand, path, wanted / np.linalg.norm(wanted, axis=-1, keepdims=True))
