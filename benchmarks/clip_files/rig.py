"""A small BVH file, and our own humanoid as another rig."""

from __future__ import annotations

import numpy as np

from pretrain.characters.rotations import conjugate, multiply, rotate
from pretrain.motion.clip import MotionClip
from pretrain.motion.raw import RawMotion

NAMES = {
    "pelvis": "Hips",
    "torso": "Chest",
    "head": "Head",
    "right_upper_arm": "RightArm",
    "right_lower_arm": "RightForeArm",
    "right_hand": "RightHand",
    "left_upper_arm": "LeftArm",
    "left_lower_arm": "LeftForeArm",
    "left_hand": "LeftHand",
    "right_thigh": "RightUpLeg",
    "right_shin": "RightLeg",
    "right_foot": "RightFoot",
    "left_thigh": "LeftUpLeg",
    "left_shin": "LeftLeg",
    "left_foot": "LeftFoot",
}
TOE = (0.13, 0.0, -0.04)  # m from the ankle
TO_Y_UP = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0.0]])  # left, up, forward


def bvh(header: str, frames: list[list[float]], frame_time: float = 0.01) -> bytes:
    """A BVH file of `header` and rows of channel values."""
    rows = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in frames)
    return f"{header}\nMOTION\nFrames: {len(frames)}\nFrame Time: {frame_time}\n{rows}\n".encode()


def chain(
    root: str = "Zrotation Yrotation Xrotation", child: str = "Zrotation Yrotation Xrotation"
) -> str:
    """A header of two joints, whose rotation channels are given."""
    return f"""HIERARCHY
ROOT Hips
{{
  OFFSET 0 0 0
  CHANNELS {3 + len(root.split())} Xposition Yposition Zposition {root}
  JOINT Arm
  {{
    OFFSET 1 2 3
    CHANNELS {len(child.split())} {child}
    End Site
    {{
      OFFSET 0 5 0
    }}
  }}
}}"""


def as_rig(
    clip: MotionClip, unit: float = 0.01, twists: dict[str, np.ndarray] | None = None
) -> RawMotion:
    """`clip` on another rig: y up, in units of `unit` m, with toes.

    `twists` (4,) rotate a body's own axes in that rig, without changing a pose.
    """
    skeleton = clip.skeleton
    twists = twists or {}
    positions, rotations = clip.world_poses
    basis = _basis()
    none = np.array([1.0, 0, 0, 0])
    own = np.stack(
        [
            multiply(multiply(basis, rotations[:, i]), twists.get(body, none)[None])
            for i, body in enumerate(skeleton.bodies)
        ],
        1,
    )
    bodies = list(skeleton.bodies)
    local = [own[:, 0]]
    offsets = [np.zeros(3)]
    for i, parent in enumerate(skeleton.parents[1:], start=1):
        local.append(multiply(conjugate(own[:, parent]), own[:, i]))
        offsets.append(
            _into(twists.get(bodies[parent], none), np.array(skeleton.offsets[i])) / unit
        )
    joints = [NAMES[body] for body in bodies]
    parents = list(skeleton.parents)
    for side in ("right", "left"):
        foot = bodies.index(f"{side}_foot")
        joints.append(f"{side.title()}ToeBase")
        parents.append(foot)
        offsets.append(_into(twists.get(f"{side}_foot", none), np.array(TOE)) / unit)
        local.append(np.tile(none, (len(clip), 1)))
    return RawMotion(
        name=clip.name,
        rate=clip.fps,
        joints=tuple(joints),
        parents=tuple(parents),
        offsets=np.array(offsets),
        rotations=np.stack(local, 1),
        root_pos=positions[:, 0] @ TO_Y_UP.T / unit,
    )


def _basis() -> np.ndarray:
    """The rotation from z-up to y-up axes, (4,)."""
    return np.array([0.5, -0.5, -0.5, -0.5])


def _into(twist: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """`offset` in axes rotated by `twist`."""
    return rotate(conjugate(twist), offset)
