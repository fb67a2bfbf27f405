"""The axes of each body, from the directions of a rig's bones.

The axes of pelvis, chest and head come from the mean positions of hips, shoulders and head, so that
no rest pose is needed. Thighs, shins and arms take their direction from the positions of joints and
their twist from the plane of knee or elbow; a straight limb, whose plane is not defined, takes it
from the rig's rotation, and one that never bends from the trunk."""

from __future__ import annotations

import numpy as np

from pretrain.motion.raw import RawMotion
from pretrain.motion.retargeting.frames import across, frame_of, signed_angle, snapped, unit
from pretrain.motion.retargeting.rig import Rig

STRAIGHT = np.radians(8)  # of flexion, below which a limb's plane is the rig's
BENT = np.radians(25)  # of flexion, above which it is that of the joints' positions
NEVER_BENT = np.radians(1)  # of flexion, below which the plane of a limb is noise
STANCE_SHARE = 0.15  # of the frames, in which a foot is lowest and stands flat


def _calibrated(rotation: np.ndarray, left: np.ndarray, up: np.ndarray) -> np.ndarray:
    """The body's axes in a joint's frame: rotations (T, 3, 3), directions (T, 3) -> mean (3, 3)."""
    inverse = rotation.transpose(0, 2, 1)
    mean_left = (inverse @ left[..., None])[..., 0].mean(0)
    mean_up = (inverse @ up[..., None])[..., 0].mean(0)
    return snapped(frame_of(mean_left, mean_up))


def pelvis_frames(rig: Rig) -> np.ndarray:
    """Matrices (T, 3, 3): its axes in the world."""
    hips = (rig.position("left_thigh") + rig.position("right_thigh")) / 2
    left = rig.bone("right_thigh", "left_thigh")
    rotation = rig.rotation("pelvis")
    return rotation @ _calibrated(rotation, left, unit(rig.position("chest") - hips))


def chest_frames(rig: Rig) -> np.ndarray:
    """Matrices (T, 3, 3): its axes in the world."""
    hips = (rig.position("left_thigh") + rig.position("right_thigh")) / 2
    left = rig.bone("right_upper_arm", "left_upper_arm")
    rotation = rig.rotation("chest")
    return rotation @ _calibrated(rotation, left, unit(rig.position("head") - hips))


def head_frames(rig: Rig, chest: np.ndarray) -> np.ndarray:
    """Matrices (T, 3, 3), with the mean of `chest`."""
    rotation = rig.rotation("head")
    return rotation @ _calibrated(rotation, chest[..., 1], chest[..., 2])


def never_bends(rig: Rig, parts: tuple[str, str, str]) -> bool:
    """Whether a limb is straight in every frame."""
    cross = np.cross(rig.bone(parts[0], parts[1]), rig.bone(parts[1], parts[2]))
    return bool(np.linalg.norm(cross, axis=-1).max() < np.sin(NEVER_BENT))


def _limb_normal(
    rig: Rig, parts: tuple[str, str, str], direction: float, usual: np.ndarray
) -> np.ndarray:
    """Axis about which the second bone flexes relative to the first, (T, 3), positive for flexion.
    `usual` (T, 3) is its mean where the limb never bends."""
    first = rig.bone(parts[0], parts[1])
    second = rig.bone(parts[1], parts[2])
    cross = np.cross(first, second)
    sine = np.linalg.norm(cross, axis=-1)
    rotation = rig.rotation(parts[0])
    axes = direction * usual if never_bends(rig, parts) else cross
    # In the upper bone's axes the hinge is constant: a mean over frames, weighted by flexion.
    hinge = unit((rotation.transpose(0, 2, 1) @ axes[..., None])[..., 0].sum(0))
    twisted = rotation @ hinge
    flexion = np.arctan2(sine, (first * second).sum(-1))
    share = np.clip((flexion - STRAIGHT) / (BENT - STRAIGHT), 0, 1)[:, None]
    # a plane that lies on the other side of the hinge is overextension
    plane = unit(cross) * np.where((cross * twisted).sum(-1, keepdims=True) < 0, -1.0, 1.0)
    return direction * across(share * plane + (1 - share) * twisted, first)


def leg_frames(
    rig: Rig, side: str, pelvis: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Matrices (T, 3, 3) of the thigh, and the flexion (T,) rad of the shin, by body; `pelvis` (T,
    3, 3) has the body's left.
    """
    parts = (f"{side}_thigh", f"{side}_shin", f"{side}_foot")
    thigh = rig.bone(parts[0], parts[1])
    shin = rig.bone(parts[1], parts[2])
    normal = _limb_normal(rig, parts, 1.0, pelvis[..., 1])
    frame = np.stack([np.cross(normal, -thigh), normal, -thigh], -1)
    return {parts[0]: frame}, {parts[1]: signed_angle(thigh, shin, normal)}


def arm_frames(
    rig: Rig, side: str, chest: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Matrices (T, 3, 3) of the upper arm, and the angle (T,) rad of the lower one, by body;
    `chest` (T, 3, 3) is its parent.

    Elbows turn about z: to the front, which is positive on the right arm and negative on the left.
    """
    parts = (f"{side}_upper_arm", f"{side}_lower_arm", f"{side}_hand")
    sign = 1.0 if side == "right" else -1.0
    upper = rig.bone(parts[0], parts[1])
    lower = rig.bone(parts[1], parts[2])
    normal = _limb_normal(rig, parts, sign, _carried(chest, -sign * upper))
    along = -sign * upper  # the right arm lies along -y
    frame = np.stack([np.cross(along, normal), along, normal], -1)
    return {parts[0]: frame}, {parts[1]: signed_angle(upper, lower, normal)}


def _carried(chest: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Up of the chest (T, 3, 3), turned by the smallest rotation from its left to `along` (T,
    3)."""
    left = chest[..., 1]
    up = chest[..., 2]
    share = (up * along).sum(-1) / np.maximum(1 + (left * along).sum(-1), 1e-6)
    return up - share[:, None] * (left + along)


def foot_frames(rig: Rig, side: str, pelvis: np.ndarray) -> np.ndarray:
    """Matrices (T, 3, 3): flat in stance, pointing to the toe. Without a toe the foot is at right
    angles to the shin, and points ahead of `pelvis` (T, 3, 3) where the knee never bends."""
    foot = f"{side}_foot"
    rotation = rig.rotation(foot)
    if f"{side}_toe" not in rig.parts:
        shin = rig.bone(foot, f"{side}_shin")
        parts = (f"{side}_thigh", f"{side}_shin", foot)
        ahead = np.cross(_limb_normal(rig, parts, 1.0, pelvis[..., 1]), shin)
        return frame_of(np.cross(shin, ahead), shin)
    inverse = rotation.transpose(0, 2, 1)
    toe = (inverse @ rig.bone(foot, f"{side}_toe")[..., None])[..., 0].mean(0)
    up = _sole(rig, side, inverse)
    left = np.cross(up, toe)
    return rotation @ frame_of(left, up)


def _sole(rig: Rig, side: str, inverse: np.ndarray) -> np.ndarray:
    """Up in the foot's axes while it stands flat, (3,)."""
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
