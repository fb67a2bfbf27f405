"""MotionClip: one motion of one skeleton at a steady rate. Numpy only; independent of file
formats and of the simulator."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pretrain.characters import rotations
from pretrain.characters.kinematics import chain_rotations, forward
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState

CONTROL_RATE = 30.0  # Hz
SAME_RATE = 1e-6  # relative difference at which two rates count as equal
SUNK = 0.03  # m below the ground, at most: contact forces throw a character that begins deeper
# m; raising a clip by more gives a warning. Captured feet sink in by up to half of it
RAISED = 0.15
MIRROR = "_mirror"  # suffix of a mirror image's name


class ClipError(ValueError):
    """A motion file that cannot be used; the message names the file, the frame and what was
    expected."""


def control_steps(seconds: float) -> int:
    """Seconds as a number of control steps."""
    return round(seconds * CONTROL_RATE)


def is_control_step(seconds: float) -> bool:
    """Whether `seconds` is the control step at which clips are read."""
    return abs(seconds * CONTROL_RATE - 1) <= SAME_RATE


@dataclass(frozen=True)
class MotionClip:
    """Poses of a skeleton at `fps`. Hinge angles and velocities are derived from the rotations."""

    name: str
    fps: float
    root_pos: np.ndarray  # (T, 3) m, world
    root_rot: np.ndarray  # (T, 4) wxyz, world, sign-continuous
    joint_rot: dict[str, np.ndarray]  # body -> (T, 4) against the parent
    skeleton: Skeleton
    source: str = ""
    licence: str = ""
    mirror_of: str = ""  # the name of the clip whose mirror image this is
    digest: str = ""  # of its file and of its recipe's changes
    warnings: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.root_pos)

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last."""
        return (len(self) - 1) / self.fps

    def resampled(self, fps: float = CONTROL_RATE) -> MotionClip:
        """The same motion at another rate: positions linear, rotations on the shorter arc."""
        return at_rate(self, np.arange(len(self)) / self.fps, fps)

    def grounded(self) -> MotionClip:
        """Moved up or down so that the median over frames of the lowest point touches z = 0, and
        none is deeper than SUNK.

        Raising by more than RAISED adds a warning, as the other frames may then float."""
        lowest = self._lowest_points()
        offset = min(float(np.median(lowest)), float(lowest.min()) + SUNK)
        raised = (
            f"{self.name}: {-lowest.min():.2f} m below the ground in frame {lowest.argmin()}; "
            f"raised by {-offset:.2f} m,"
            f" half of its frames are {np.median(lowest) - offset:.2f} m or more above the "
            "ground now",
        )
        warnings = self.warnings + (raised if -offset > RAISED else ())
        return replace(self, root_pos=self.root_pos - np.array([0, 0, offset]), warnings=warnings)

    def _lowest_points(self) -> np.ndarray:
        """Height of the lowest point in each frame, (T,) m; from rotations, as no hinge angle is
        needed.
        """
        positions, turns = self.world_poses
        surface = np.array(self.skeleton.surface)  # (P, 5): body, x, y, z, radius
        bodies = surface[:, 0].astype(int)
        points = positions[:, bodies] + rotations.rotate(turns[:, bodies], surface[:, 1:4])
        return (points[..., 2] - surface[:, 4]).min(-1)

    def low_passed(self, cutoff: float) -> MotionClip:
        """Averaged over time by a Gaussian that keeps half the power at `cutoff` (Hz, at most a
        quarter of the rate), less above it and more below; first and last frames are kept.

        Adds a warning with the largest displacement of a body."""

        def smooth(x: np.ndarray) -> np.ndarray:
            return _gaussian(x, np.sqrt(np.log(2)) / (2 * np.pi * cutoff) * self.fps)

        def turned(q: np.ndarray) -> np.ndarray:
            mean = smooth(q)
            return mean / np.linalg.norm(mean, axis=-1, keepdims=True)

        joint_rot = {body: turned(q) for body, q in self.joint_rot.items()}
        clip = replace(
            self,
            root_pos=smooth(self.root_pos),
            root_rot=turned(self.root_rot),
            joint_rot=joint_rot,
        )
        moved = np.linalg.norm(clip.body_positions() - self.body_positions(), axis=-1).max(-1)
        most = f"a body by up to {moved.max():.2f} m (frame {moved.argmax()})"
        note = f"{self.name}: low-passed at {cutoff:g} Hz, which moves {most}"
        # change this text with the smoothing: a library is measured on the clips of its training
        digest = (
            f"sha256:{hashlib.sha256(f'{self.digest} low_pass {cutoff!r}'.encode()).hexdigest()}"
        )
        return replace(clip, warnings=(*self.warnings, note), digest=digest)

    def mirrored(self) -> MotionClip:
        """Left and right exchanged, by reflection at the x-z plane."""
        flip = np.array(
            [1.0, -1.0, 1.0, -1.0]
        )  # a reflection at y keeps turns about y, reverses x and z
        bodies = self.skeleton.bodies
        opposite = {
            body: bodies[i] for body, i in zip(bodies, self.skeleton.mirrored_bodies, strict=True)
        }
        return replace(
            self,
            name=f"{self.name}{MIRROR}",
            mirror_of=self.name,
            root_pos=self.root_pos * np.array([1.0, -1.0, 1.0]),
            root_rot=self.root_rot * flip,
            joint_rot={body: self.joint_rot[opposite[body]] * flip for body in self.joint_rot},
        )

    @cached_property
    def joint_pos(self) -> np.ndarray:
        """Hinge angles, continuous in time, (T, J) rad, read-only. Not clamped to the limits; the
        middle of a hinge's extent is within half a turn of the middle of its range."""
        angles = np.zeros((len(self), self.skeleton.num_hinges))
        for joint in self.skeleton.joints:
            q = self.joint_rot[joint.body]
            if len(joint.axes) == 3:
                angles[:, joint.start : joint.stop] = rotations.to_hinges(joint.axes, q)
            else:
                angles[:, joint.start] = _hinge_angle(q, joint.axes)
        # a quaternion and its negative are one rotation, so whole turns are ambiguous
        middle = (np.array(self.skeleton.lower) + np.array(self.skeleton.upper)) / 2
        extent = (angles.min(0) + angles.max(0)) / 2
        turns = np.round((middle - extent) / (2 * np.pi))
        angles[:, turns != 0] += 2 * np.pi * turns[turns != 0]
        angles.flags.writeable = False
        return angles

    @cached_property
    def states(self) -> CharacterState:
        """Every frame with velocities by central differences (one-sided at the ends), from
        rotations and not from angles."""
        joint_pos = self.joint_pos
        joint_vel = np.zeros_like(joint_pos)
        for joint in self.skeleton.joints:
            turning = _angular_velocity(self.joint_rot[joint.body], self.fps)
            part = joint_pos[:, joint.start : joint.stop]
            joint_vel[:, joint.start : joint.stop] = _hinge_rates(joint.axes, part, turning)
        return CharacterState(
            root_pos=self.root_pos,
            root_rot=self.root_rot,
            root_vel=np.gradient(self.root_pos, 1 / self.fps, axis=0),
            root_ang_vel=_angular_velocity(self.root_rot, self.fps),
            joint_pos=joint_pos,
            joint_vel=joint_vel,
        )

    @cached_property
    def world_poses(self) -> tuple[np.ndarray, np.ndarray]:
        """Body origins (T, B, 3) m and rotations (T, B, 4) wxyz in the world, read-only. Exact:
        computed without hinge angles."""
        fixed = np.zeros((len(self), 4))
        fixed[:, 0] = 1
        local = [self.joint_rot.get(body, fixed) for body in self.skeleton.bodies]
        poses = chain_rotations(self.skeleton, self.root_pos, self.root_rot, local)
        for array in poses:
            array.flags.writeable = False
        return poses

    def body_positions(self) -> np.ndarray:
        """Body origins in the world, (T, B, 3) m, from the hinge angles."""
        return forward(self.skeleton, self.root_pos, self.root_rot, self.joint_pos)[0]


def at_rate(clip: MotionClip, stamps: np.ndarray, fps: float) -> MotionClip:
    """`clip`, whose frames are at `stamps` (s, rising, maybe uneven), resampled every 1/fps s from
    its first frame."""
    # files round their frame times: a clip that ends a tenth of a frame early still has its last
    # frame
    times = np.arange(int(np.floor(stamps[-1] * fps + 0.1)) + 1) / fps
    later = np.clip(np.searchsorted(stamps, times, side="right"), 1, len(stamps) - 1)
    earlier = later - 1
    blend = np.clip((times - stamps[earlier]) / (stamps[later] - stamps[earlier]), 0, 1)
    root_pos = clip.root_pos[earlier] * (1 - blend)[:, None] + clip.root_pos[later] * blend[:, None]

    def turned(q: np.ndarray) -> np.ndarray:
        return continuous(rotations.slerp(q[earlier], q[later], blend))

    joint_rot = {body: turned(q) for body, q in clip.joint_rot.items()}
    return replace(
        clip, fps=fps, root_pos=root_pos, root_rot=turned(clip.root_rot), joint_rot=joint_rot
    )


def continuous(q: np.ndarray) -> np.ndarray:
    """Signs chosen so that each quaternion is in the half-sphere of the previous one, (T, 4)."""
    steps = np.where((q[1:] * q[:-1]).sum(-1) < 0, -1.0, 1.0)
    return q * np.concatenate([[1.0], np.cumprod(steps)])[:, None]


def _gaussian(x: np.ndarray, sigma: float) -> np.ndarray:
    """Means over time with weights of a Gaussian, `sigma` in frames, (T, D); beyond its ends x is
    point-reflected."""
    reach = int(np.ceil(4 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    padded = np.pad(x, ((reach, reach), (0, 0)), mode="reflect", reflect_type="odd")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=0) @ (
        weights / weights.sum()
    )


def _angular_velocity(q: np.ndarray, fps: float) -> np.ndarray:
    """Central differences of rotations in their outer frame, (T, 4) -> (T, 3) rad/s."""
    ahead = np.minimum(np.arange(len(q)) + 1, len(q) - 1)
    behind = np.maximum(np.arange(len(q)) - 1, 0)
    step = rotations.log(rotations.multiply(q[ahead], rotations.conjugate(q[behind])))
    return step * (fps / np.maximum(ahead - behind, 1))[:, None]


def _hinge_angle(q: np.ndarray, axis: str) -> np.ndarray:
    """Angle of a rotation about one known axis, (T, 4) -> (T,)."""
    return np.unwrap(2 * np.arctan2(q[:, 1 + rotations.AXIS[axis]], q[:, 0]))


def _hinge_rates(axes: str, angles: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """Hinge rates that give the angular velocity `turning` in the parent's frame. (T, n), (T, 3) ->
    (T, n) rad/s.

    Damped least squares: near gimbal lock two hinges coincide, and the exact solution would be
    huge."""
    if len(axes) == 1:
        return turning[:, rotations.AXIS[axes], None]
    jacobian = rotations.hinge_axes(axes, angles)
    normal = jacobian.transpose(0, 2, 1) @ jacobian + 1e-3 * np.eye(3)
    return np.linalg.solve(normal, (jacobian.transpose(0, 2, 1) @ turning[..., None]))[..., 0]
