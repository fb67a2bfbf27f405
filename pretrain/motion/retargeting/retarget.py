"""Retargeting: a RawMotion of any human rig -> a MotionClip of the project's humanoid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pretrain.characters.rotations import conjugate, from_axis_angle, multiply, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip, continuous
from pretrain.motion.raw import RawMotion
from pretrain.motion.retargeting.frames import from_matrix
from pretrain.motion.retargeting.limb_frames import (
    arm_frames,
    chest_frames,
    foot_frames,
    head_frames,
    leg_frames,
    never_bends,
    pelvis_frames,
)
from pretrain.motion.retargeting.rig import Rig, make_rig

UPRIGHT = 0.3  # vertical part of the trunk's axis, below which a person lies or hangs
LIMBS = tuple(
    (f"{side}_{upper}", f"{side}_{lower}", f"{side}_{end}")
    for side in ("left", "right")
    for upper, lower, end in (("thigh", "shin", "foot"), ("upper_arm", "lower_arm", "hand"))
)
HUMANOID = (
    "torso",
    "head",
    "right_upper_arm",
    "left_lower_arm",
    "right_thigh",
    "left_shin",
    "left_foot",
)


def retarget(
    motion: RawMotion, skeleton: Skeleton, joints: Mapping[str, str] | None = None
) -> MotionClip:
    """`motion` on `skeleton`, at its own rate, beginning at the origin, facing x; feet may slide
    and float.

    `joints` maps parts of the body to joints, as in `find_joints`."""
    if missing := [body for body in HUMANOID if body not in skeleton.bodies]:
        raise ClipError(
            f"{motion.name}: retargeting needs a humanoid; {skeleton.name!r} lacks "
            f"{', '.join(missing)}"
        )
    rig = make_rig(motion, joints)
    world = {"pelvis": pelvis_frames(rig), "torso": chest_frames(rig)}
    world["head"] = head_frames(rig, world["torso"])
    flexion = {}
    for side in ("left", "right"):
        leg = leg_frames(rig, side, world["pelvis"])
        for limb in (leg, arm_frames(rig, side, world["torso"])):
            world |= limb[0]
            flexion |= limb[1]
        world[f"{side}_foot"] = foot_frames(rig, side, world["pelvis"])
    root_pos = _root_positions(rig, skeleton)
    clip = _clip(motion, skeleton, root_pos, world, flexion)
    doubts = (*_never_bent(rig), *_doubts(rig, world))
    return replace(clip, warnings=(*clip.warnings, *doubts))


def _never_bent(rig: Rig) -> tuple[str, ...]:
    """The limbs with assumed planes, one line each."""
    lines = []
    for parts in LIMBS:
        if never_bends(rig, parts):
            problem = f"{parts[0]} and {parts[1]} are straight in every frame"
            lines.append(f"{rig.motion.name}: {problem}; the axis between them is assumed")
    return tuple(lines)


def _doubts(rig: Rig, world: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Signs of a wrong map of joints or axes, one line each."""
    name = rig.motion.name
    lines = []
    forwards = 0.0
    for side in ("left", "right"):
        thigh = rig.bone(f"{side}_thigh", f"{side}_shin")
        shin = rig.bone(f"{side}_shin", f"{side}_foot")
        forwards -= float((np.cross(thigh, shin) * world["pelvis"][..., 1]).sum(-1).mean())
    if forwards > 0:
        lines.append(f"{name}: its knees bend forwards; are left and right exchanged?")
    upright = float(np.median(world["torso"][:, 2, 2]))
    if upright < UPRIGHT:
        lean = np.degrees(np.arccos(np.clip(upright, -1, 1)))
        lines.append(
            f"{name}: its trunk is {lean:.0f} degrees off the vertical in half of its frames; "
            f"is {rig.motion.up} up?"
        )
    return tuple(lines)


def _root_positions(rig: Rig, skeleton: Skeleton) -> np.ndarray:
    """The midpoint of the hips, scaled by the ratio of leg lengths, (T, 3) m."""
    legs = [
        rig.length(f"{side}_thigh", f"{side}_shin") + rig.length(f"{side}_shin", f"{side}_foot")
        for side in ("left", "right")
    ]
    ours = sum(
        abs(skeleton.offsets[skeleton.bodies.index(body)][2]) for body in ("left_shin", "left_foot")
    )
    hips = (rig.position("left_thigh") + rig.position("right_thigh")) / 2
    return hips * (2 * ours / sum(legs))


def _clip(
    motion: RawMotion,
    skeleton: Skeleton,
    root_pos: np.ndarray,
    world: dict[str, np.ndarray],
    flexion: dict[str, np.ndarray],
) -> MotionClip:
    """World frames of bodies (T, 3, 3) and hinge angles (T,) -> rotations relative to parents."""
    q = {body: continuous(from_matrix(frame)) for body, frame in world.items()}
    hinge_axes = {joint.body: joint.axes for joint in skeleton.joints if len(joint.axes) == 1}
    joint_rot: dict[str, np.ndarray] = {}
    for joint in skeleton.joints:
        body = joint.body
        parent = skeleton.bodies[skeleton.parents[skeleton.bodies.index(body)]]
        if body in flexion:
            joint_rot[body] = from_axis_angle(hinge_axes[body], flexion[body])
            q[body] = multiply(q[parent], joint_rot[body])
        else:
            joint_rot[body] = continuous(multiply(conjugate(q[parent]), q[body]))
    heading = world["pelvis"][0, :2, 0]
    turn = from_axis_angle("z", np.array(-np.arctan2(heading[1], heading[0])))
    start = root_pos[0] * np.array([1.0, 1.0, 0.0])
    return MotionClip(
        name=motion.name,
        fps=motion.rate,
        root_pos=rotate(turn, root_pos - start),
        root_rot=continuous(multiply(np.broadcast_to(turn, q["pelvis"].shape), q["pelvis"])),
        joint_rot=joint_rot,
        skeleton=skeleton,
        warnings=motion.warnings,
    )
