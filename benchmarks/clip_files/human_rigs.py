"""Files on human rigs, made from a clip: BVH, ASF/AMC, DeepMimic and a body of SMPL's joints."""

from __future__ import annotations

import json

import numpy as np

from benchmarks.clip_files.rig import as_rig, bvh
from pretrain.characters.rotations import to_matrix
from pretrain.motion.clip import MotionClip
from pretrain.motion.importers import protomotions
from pretrain.motion.raw import RawMotion

ZYX = "Zrotation Yrotation Xrotation"
BONES = {  # ASF: bone -> direction, length; in the world's axes, y up
    "lfemur": ((0.03, -1, 0), 0.42),
    "ltibia": ((0.03, -1, -0.05), 0.41),
    "lfoot": ((0, -0.3, 1), 0.13),
    "ltoes": ((0, 0, 1), 0.07),
    "thorax": ((0, 1, 0), 0.45),
    "head": ((0, 1, 0), 0.2),
    "lhumerus": ((1, 0, -0.03), 0.28),
    "lradius": ((1, 0, 0.03), 0.26),
    "lhand": ((1, 0, 0), 0.1),
}
TURNS = "axis 0 0 0 XYZ\ndof rx ry rz\n"
SIDED = ("lfemur ltibia", "ltibia lfoot", "lfoot ltoes", "lhumerus lradius", "lradius lhand")


def euler(rig: RawMotion) -> np.ndarray:
    """Degrees about z, then y, then x of each joint, (T, J, 3)."""
    m = to_matrix(rig.rotations)
    y = np.arcsin(-m[..., 2, 0].clip(-1, 1))
    z = np.arctan2(m[..., 1, 0], m[..., 0, 0])
    x = np.arctan2(m[..., 2, 1], m[..., 2, 2])
    return np.degrees(np.stack([z, y, x], -1))


def bvh_of(clip: MotionClip) -> bytes:
    """`clip` as a BVH file of another rig."""
    rig = as_rig(clip)
    lines = ["HIERARCHY"]
    order: list[int] = []

    def add(joint: int) -> None:
        order.append(joint)
        kind = "ROOT" if joint == 0 else "JOINT"
        channels = f"6 Xposition Yposition Zposition {ZYX}" if joint == 0 else f"3 {ZYX}"
        offset = " ".join(f"{value:.6f}" for value in rig.offsets[joint])
        head = f"{kind} {rig.joints[joint]}"
        lines.extend([head, "{", f"OFFSET {offset}", f"CHANNELS {channels}"])
        for child, parent in enumerate(rig.parents):
            if parent == joint:
                add(child)
        lines.append("}")

    add(0)
    angles = euler(rig)
    rows = [[*rig.root_pos[t], *angles[t, order].reshape(-1)] for t in range(len(clip))]
    return bvh("\n".join(lines), rows, 1 / clip.fps)


def human_amc(clip: MotionClip) -> bytes:
    """A skeleton with CMU's names and a take with bending knees, as many frames as `clip`."""
    bones = {}
    for name, (direction, length) in BONES.items():
        bones[name] = (direction, length)
        if name.startswith("l"):
            x, y, z = direction
            bones[f"r{name[1:]}"] = ((-x, y, z), length)
    blocks = "".join(
        f"begin\nname {name}\ndirection {x} {y} {z}\nlength {length}\n{TURNS}end\n"
        for name, ((x, y, z), length) in bones.items()
    )
    tree = ["root lfemur rfemur thorax", "thorax head lhumerus rhumerus", *SIDED]
    tree += [" ".join(f"r{word[1:]}" for word in line.split()) for line in SIDED]
    head = ":version 1.10\n:units\nangle deg\n:root\norder TX TY TZ RX RY RZ\naxis XYZ\n"
    skeleton = f"{head}:bonedata\n{blocks}:hierarchy\nbegin\n" + "\n".join(tree) + "\nend\n"
    frames = []
    for t in range(len(clip)):
        bent = {"ltibia": 20 + t, "rtibia": 30 - t, "lfemur": -10, "rfemur": -15}
        rows = [f"{name} {bent.get(name, 0)} 0 0" for name in bones]
        frames.append("\n".join([str(t + 1), f"root 0 0.9 {t / 100} 0 0 0", *rows]))
    return f"{skeleton}:FULLY-SPECIFIED\n:DEGREES\n".encode() + "\n".join(frames).encode()


def deepmimic(clip: MotionClip) -> bytes:
    """A DeepMimic file of a walk with straight limbs."""
    frame = np.zeros(44)
    frame[[4, 8, 12, 16, 21, 25, 30, 35, 39]] = 1
    rows = np.tile(frame, (len(clip), 1))
    rows[:, 0] = 1 / clip.fps
    rows[:, 1] = np.arange(len(clip)) / 100
    rows[:, 2] = 0.9
    return json.dumps({"Loop": "none", "Frames": rows.tolist()}).encode()


def standing() -> tuple[np.ndarray, np.ndarray]:
    """A body of SMPL's 24 joints that moves forwards, as positions and rotations in the world."""
    places = {
        "Pelvis": (0, 0, 0.95),
        "Hip": (0, 0.08, 0.87),
        "Knee": (0.01, 0.09, 0.47),
        "Ankle": (-0.02, 0.09, 0.08),
        "Toe": (0.11, 0.1, 0.02),
        "Torso": (0, 0, 1.05),
        "Spine": (0, 0, 1.18),
        "Chest": (0, 0, 1.24),
        "Neck": (0, 0, 1.45),
        "Head": (0.03, 0, 1.52),
        "Thorax": (0, 0.08, 1.36),
        "Shoulder": (0, 0.17, 1.4),
        "Elbow": (-0.01, 0.42, 1.4),
        "Wrist": (0.01, 0.67, 1.4),
        "Hand": (0.01, 0.75, 1.4),
    }
    mirror = {"L": 1, "R": -1}
    points = []
    for joint in protomotions.BODIES[24][0]:
        side, _, part = joint.rpartition("_")
        points.append(np.array(places[part]) * [1, mirror.get(side, 1), 1])
    positions = np.array(points)[None] + np.linspace(0, 0.1, 5)[:, None, None] * [1, 0, 0]
    return positions, np.tile([0, 0, 0, 1.0], (5, 24, 1))
