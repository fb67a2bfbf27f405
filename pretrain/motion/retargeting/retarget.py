"""Retargeting: a RawMotion of any human rig -> a MotionClip of the project's humanoid.

A rig's bones tell where its limbs point; the axes of pelvis, chest and head come from where hips,
shoulders and neck stand on average, so that no rest pose is needed. Thighs, shins and arms take
their direction from the positions of joints and their twist from the plane of knee or elbow; a
straight limb, whose plane is not defined, takes it from the rig's rotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pretrain.characters.rotations import conjugate, from_axis_angle, multiply, rotate, to_matrix
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip, continuous
from pretrain.motion.raw import RawMotion
from pretrain.motion.retargeting.frames import (
    across,
    frame_of,
    from_matrix,
    signed_angle,
    snapped,
    unit,
)
from pretrain.motion.retargeting.joint_names import find_joints

TO_Z_UP = {"y": np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0.0]]), "z": np.eye(3)}
STRAIGHT = np.radians(8)  # of flexion, below which a limb's plane is the rig's
BENT = np.radians(25)  # of flexion, above which it is that of the joints' positions
UPRIGHT = 0.3  # of the trunk's axis along the vertical, below which a person lies or hangs
STANCE_SHARE = 0.15  # of the frames, in which a foot is lowest: there it stands flat
HUMANOID = (
    "torso",
    "head",
    "right_upper_arm",
    "left_lower_arm",
    "right_thigh",
    "left_shin",
    "left_foot",
)


@dataclass(frozen=True)
class Rig:
    """Where the parts of the person in a RawMotion are, z up."""

    motion: RawMotion
    parts: dict[str, int]

    @cached_property
    def _moved(self) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        return self.motion.forward(tuple(self.parts.values()))

    def position(self, part: str) -> np.ndarray:
        """(T, 3), units of the file."""
        return self._moved[0][self.parts[part]] @ TO_Z_UP[self.motion.up].T

    def rotation(self, part: str) -> np.ndarray:
        """Matrices (T, 3, 3) from the joint's own axes to the world."""
        return TO_Z_UP[self.motion.up] @ to_matrix(self._moved[1][self.parts[part]])

    def bone(self, start: str, end: str) -> np.ndarray:
        """Unit vectors from one part to another, (T, 3)."""
        return unit(self.position(end) - self.position(start))

    def length(self, start: str, end: str) -> float:
        """Mean distance, units of the file."""
        return float(np.linalg.norm(self.position(end) - self.position(start), axis=-1).mean())


def retarget(
    motion: RawMotion, skeleton: Skeleton, joints: Mapping[str, str] | None = None
) -> MotionClip:
    """`motion` on `skeleton`, at its own rate, beginning at the origin and facing x; feet may slide
    and float.

    `joints` names joints for parts of the body, as in `find_joints`.
    """
    if missing := [body for body in HUMANOID if body not in skeleton.bodies]:
        raise ClipError(
            f"{motion.name}: retargeting needs a humanoid; {skeleton.name!r} lacks "
            f"{', '.join(missing)}"
        )
    rig = Rig(motion, _parts(motion, joints))
    world = {"pelvis": _pelvis(rig), "torso": _chest(rig)}
    world["head"] = _head(rig, world["torso"])
    flexion = {}
    for side in ("left", "right"):
        for limb in (_leg(rig, side), _arm(rig, side)):
            world |= limb[0]
            flexion |= limb[1]
        world[f"{side}_foot"] = _foot(rig, side)
    root_pos = _root_positions(rig, skeleton)
    clip = _clip(motion, skeleton, root_pos, world, flexion)
    return replace(clip, warnings=(*clip.warnings, *_doubts(rig, world)))


def _doubts(rig: Rig, world: dict[str, np.ndarray]) -> tuple[str, ...]:
    """What a wrong map of joints or axes looks like, a line each."""
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


def _parts(motion: RawMotion, joints: Mapping[str, str] | None) -> dict[str, int]:
    """Part -> joint; pelvis, chest and neck are where legs, arms and head branch off."""
    parts = find_joints(motion.joints, motion.name, joints)
    arms = motion.ancestors(parts["left_upper_arm"])
    legs = motion.ancestors(parts["left_thigh"])
    parts["chest"] = next(
        joint for joint in motion.ancestors(parts["right_upper_arm"]) if joint in arms
    )
    parts["pelvis"] = next(
        joint for joint in motion.ancestors(parts["right_thigh"]) if joint in legs
    )
    parts["neck"] = max(motion.parents[parts["head"]], parts["chest"])
    return parts


def _calibrated(rotation: np.ndarray, left: np.ndarray, up: np.ndarray) -> np.ndarray:
    """The body's axes in a joint's own: (T, 3, 3), and directions (T, 3) that are theirs on average
    -> (3, 3).
    """
    inverse = rotation.transpose(0, 2, 1)
    mean_left = (inverse @ left[..., None])[..., 0].mean(0)
    mean_up = (inverse @ up[..., None])[..., 0].mean(0)
    return snapped(frame_of(mean_left, mean_up))


def _pelvis(rig: Rig) -> np.ndarray:
    hips = (rig.position("left_thigh") + rig.position("right_thigh")) / 2
    left = rig.bone("right_thigh", "left_thigh")
    rotation = rig.rotation("pelvis")
    return rotation @ _calibrated(rotation, left, unit(rig.position("chest") - hips))


def _chest(rig: Rig) -> np.ndarray:
    hips = (rig.position("left_thigh") + rig.position("right_thigh")) / 2
    left = rig.bone("right_upper_arm", "left_upper_arm")
    rotation = rig.rotation("chest")
    return rotation @ _calibrated(rotation, left, unit(rig.position("head") - hips))


def _head(rig: Rig, chest: np.ndarray) -> np.ndarray:
    rotation = rig.rotation("head")
    return rotation @ _calibrated(rotation, chest[..., 1], chest[..., 2])


def _limb_normal(rig: Rig, parts: tuple[str, str, str], direction: float) -> np.ndarray:
    """Axis about which the second bone flexes against the first, (T, 3): positive about it is
    flexion.
    """
    first = rig.bone(parts[0], parts[1])
    second = rig.bone(parts[1], parts[2])
    cross = np.cross(first, second)
    sine = np.linalg.norm(cross, axis=-1)
    rotation = rig.rotation(parts[0])
    # In the upper bone's own axes the hinge is constant: a mean over frames, weighted by flexion.
    hinge = unit((rotation.transpose(0, 2, 1) @ cross[..., None])[..., 0].sum(0))
    twisted = rotation @ hinge
    flexion = np.arctan2(sine, (first * second).sum(-1))
    share = np.clip((flexion - STRAIGHT) / (BENT - STRAIGHT), 0, 1)[:, None]
    # a plane that lies on the other side of the hinge is overextension
    plane = unit(cross) * np.where((cross * twisted).sum(-1, keepdims=True) < 0, -1.0, 1.0)
    return direction * across(share * plane + (1 - share) * twisted, first)


def _leg(rig: Rig, side: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    parts = (f"{side}_thigh", f"{side}_shin", f"{side}_foot")
    thigh = rig.bone(parts[0], parts[1])
    shin = rig.bone(parts[1], parts[2])
    normal = _limb_normal(rig, parts, 1.0)
    frame = np.stack([np.cross(normal, -thigh), normal, -thigh], -1)
    return {parts[0]: frame}, {parts[1]: signed_angle(thigh, shin, normal)}


def _arm(rig: Rig, side: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Elbows turn about z: to the front, which is positive on the right arm and negative on the
    left.
    """
    parts = (f"{side}_upper_arm", f"{side}_lower_arm", f"{side}_hand")
    sign = 1.0 if side == "right" else -1.0
    upper = rig.bone(parts[0], parts[1])
    lower = rig.bone(parts[1], parts[2])
    normal = _limb_normal(rig, parts, sign)
    along = -sign * upper  # the right arm lies along -y
    frame = np.stack([np.cross(along, normal), along, normal], -1)
    return {parts[0]: frame}, {parts[1]: signed_angle(upper, lower, normal)}


def _foot(rig: Rig, side: str) -> np.ndarray:
    """Flat where it stands, its tip towards the toe. Without a toe it stays at right angles to the
    shin.
    """
    foot = f"{side}_foot"
    rotation = rig.rotation(foot)
    if f"{side}_toe" not in rig.parts:
        shin = rig.bone(foot, f"{side}_shin")
        ahead = np.cross(_limb_normal(rig, (f"{side}_thigh", f"{side}_shin", foot), 1.0), shin)
        return frame_of(np.cross(shin, ahead), shin)
    inverse = rotation.transpose(0, 2, 1)
    toe = (inverse @ rig.bone(foot, f"{side}_toe")[..., None])[..., 0].mean(0)
    up = _sole(rig, side, inverse)
    left = np.cross(up, toe)
    return rotation @ frame_of(left, up)


def _sole(rig: Rig, side: str, inverse: np.ndarray) -> np.ndarray:
    """Where up is in the foot's own axes while it stands flat, (3,)."""
    if rig.motion.rest is not None:
        resting = RawMotion(
            **{
                **rig.motion.__dict__,
                "rotations": rig.motion.rest[None],
                "root_pos": rig.motion.root_pos[:1],
                "translations": {
                    joint: moved[:1] for joint, moved in rig.motion.translations.items()
                },
            }
        )
        return Rig(resting, rig.parts).rotation(f"{side}_foot")[0].T @ np.array([0, 0, 1.0])
    # lowest and slowest: heel and toe both stand on the ground
    height = rig.position(f"{side}_foot")[:, 2] + rig.position(f"{side}_toe")[:, 2]
    speed = np.linalg.norm(np.gradient(rig.position(f"{side}_foot"), axis=0), axis=-1)
    rank = np.argsort(np.argsort(height)) + np.argsort(np.argsort(speed))
    flat = np.argsort(rank)[: max(1, round(STANCE_SHARE * len(rank)))]
    return unit(np.median(inverse[flat][..., 2], axis=0))


def _root_positions(rig: Rig, skeleton: Skeleton) -> np.ndarray:
    """The middle between the hips, as far as our legs are longer or shorter, (T, 3) m."""
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
    """World frames of bodies (T, 3, 3) and hinge angles (T,) -> rotations against parents."""
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
        licence=motion.licence,
        warnings=motion.warnings,
    )
