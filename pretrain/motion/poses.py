"""Poses of a clip in the world, and clips from such poses. Rotations are exact: no hinge angles are
used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.characters.rotations import conjugate, from_axis_angle, multiply, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import MotionClip, continuous
from pretrain.motion.retargeting.frames import from_matrix

STRAIGHT = 0.985  # share of a limb's length from which its extension is eased


def bend_limb(
    root: np.ndarray, target: np.ndarray, plane: np.ndarray, lengths: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two bones from `root` to `target`, both (T, 3) m, about a hinge near the unit vectors `plane`
    (T, 3).

    Returns the first bone's direction and the hinge's axis, (T, 3), and the flexion, (T,) rad, of 0
    or more. A limb that is nearly straight, or too short, ends before its target, so that its hinge
    does not snap straight."""
    first, second = lengths
    gap = target - root
    distance = _eased(np.linalg.norm(gap, axis=-1) / (first + second)) * (first + second)
    distance = np.maximum(distance, abs(first - second) + 1e-6)
    ahead = gap / np.maximum(np.linalg.norm(gap, axis=-1, keepdims=True), 1e-9)
    axis = plane - (plane * ahead).sum(-1, keepdims=True) * ahead
    axis = axis / np.maximum(np.linalg.norm(axis, axis=-1, keepdims=True), 1e-9)
    cosine = (first**2 + second**2 - distance**2) / (2 * first * second)
    flexion = np.pi - np.arccos(cosine.clip(-1, 1))
    lean = np.arccos(((first**2 + distance**2 - second**2) / (2 * first * distance)).clip(-1, 1))
    bone = ahead * np.cos(lean)[:, None] - np.cross(axis, ahead) * np.sin(lean)[:, None]
    return bone, axis, flexion


def _eased(reach: np.ndarray) -> np.ndarray:
    """Shares of a limb's length, (T,), those above STRAIGHT approach 1 asymptotically."""
    rest = 1 - STRAIGHT
    over = np.maximum(reach - STRAIGHT, 0) / rest
    return np.where(reach > STRAIGHT, STRAIGHT + rest * (1 - np.exp(-over)), reach)


def foot_poses(clip: MotionClip) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """World positions of the ankles (T, 3) m and rotations of the feet (T, 4), by foot."""
    positions, rotations = clip.world_poses
    ids = {foot: clip.skeleton.bodies.index(foot) for foot in clip.skeleton.feet}
    return {foot: positions[:, i] for foot, i in ids.items()}, {
        foot: rotations[:, i] for foot, i in ids.items()
    }


def with_feet(
    clip: MotionClip, ankles: dict[str, np.ndarray], feet: dict[str, np.ndarray]
) -> MotionClip:
    """`clip` with its feet at `ankles` (T, 3) m, turned as `feet` (T, 4) in the world; knees keep
    their planes.
    """
    skeleton = clip.skeleton
    positions, rotations = clip.world_poses
    joint_rot = dict(clip.joint_rot)
    for foot, target in ankles.items():
        thigh, shin = limb_of(skeleton, foot)
        lengths = (bone_length(skeleton, shin), bone_length(skeleton, foot))
        hip = positions[:, skeleton.bodies.index(thigh)]
        plane = rotate(rotations[:, skeleton.bodies.index(thigh)], np.array([0, 1.0, 0]))
        bone, axis, flexion = bend_limb(hip, target, plane, lengths)
        frame = from_matrix(np.stack([np.cross(axis, -bone), axis, -bone], -1))
        joint_rot[thigh] = continuous(multiply(conjugate(clip.root_rot), frame))
        joint_rot[shin] = from_axis_angle("y", flexion)
        shin_rot = multiply(frame, joint_rot[shin])
        joint_rot[foot] = continuous(multiply(conjugate(shin_rot), feet[foot]))
    return replace(clip, joint_rot=joint_rot)


def with_hand(
    clip: MotionClip, hand: str, target: np.ndarray, plane: np.ndarray | None = None
) -> MotionClip:
    """`clip` with `hand` at `target` (T, 3) m as far as the arm reaches; the elbow keeps its plane,
    or takes `plane`.
    """
    skeleton = clip.skeleton
    positions, rotations = clip.world_poses
    upper, lower = limb_of(skeleton, hand)
    lengths = (bone_length(skeleton, lower), bone_length(skeleton, hand))
    shoulder = skeleton.bodies.index(upper)
    sign = 1.0 if hand.startswith("right") else -1.0
    current_plane = rotate(rotations[:, shoulder], np.array([0, 0, sign]))
    bone, axis, flexion = bend_limb(
        positions[:, shoulder], target, current_plane if plane is None else plane, lengths
    )
    along = -sign * bone
    frame = from_matrix(np.stack([np.cross(along, sign * axis), along, sign * axis], -1))
    torso = rotations[:, skeleton.parents[shoulder]]
    joint_rot = dict(clip.joint_rot)
    joint_rot[upper] = continuous(multiply(conjugate(torso), frame))
    joint_rot[lower] = from_axis_angle("z", sign * flexion)
    return replace(clip, joint_rot=joint_rot)


def limb_of(skeleton: Skeleton, end: str) -> tuple[str, str]:
    """The two bodies above `end`: thigh and shin of a foot, upper and lower arm of a hand."""
    lower = skeleton.parents[skeleton.bodies.index(end)]
    return skeleton.bodies[skeleton.parents[lower]], skeleton.bodies[lower]


def bone_length(skeleton: Skeleton, body: str) -> float:
    """From the joint above `body` to its own, m."""
    return float(np.linalg.norm(skeleton.offsets[skeleton.bodies.index(body)]))
