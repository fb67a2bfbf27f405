"""Forward kinematics: body positions and rotations from the root and the joint angles. Pure; numpy
or torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pretrain.characters.rotations import Array, from_axis_angle, multiply, namespace, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState


def ball_rotations(skeleton: Skeleton, joint_pos: Array) -> Array:
    """Rotations of the three-hinge joints against their parents: (..., J) -> (..., balls, 4)."""
    xp = namespace(joint_pos)
    half = 0.5 * xp.stack([joint_pos[..., j.start : j.stop] for j in skeleton.balls], -2)
    cosine = xp.cos(half)[..., None]
    sine = xp.sin(half)[..., None]
    axes = _convert(skeleton.ball_axes, joint_pos)
    hinges = xp.concatenate([cosine, sine * axes], -1)  # (..., balls, 3 hinges, 4)
    return multiply(multiply(hinges[..., 0, :], hinges[..., 1, :]), hinges[..., 2, :])


def forward(
    skeleton: Skeleton, root_pos: Array, root_rot: Array, joint_pos: Array
) -> tuple[Array, Array]:
    """Body origins (..., B, 3) and rotations (..., B, 4), in the frame of the root's position."""
    local = joint_rotations(skeleton, joint_pos, ball_rotations(skeleton, joint_pos))
    return chain_rotations(skeleton, root_pos, root_rot, local)


def chain_rotations(
    skeleton: Skeleton, root_pos: Array, root_rot: Array, local: list[Array]
) -> tuple[Array, Array]:
    """`forward`, from each body's rotation against its parent.

    Works on one generation of bodies at a time; body by body, kernel calls would dominate."""
    xp = namespace(root_pos)
    positions = {0: root_pos}
    rotations = {0: root_rot}
    for bodies in skeleton.generations:
        parents = [skeleton.parents[i] for i in bodies]
        offsets = _convert(np.array([skeleton.offsets[i] for i in bodies]), root_pos)
        parent_rot = xp.stack([rotations[p] for p in parents], -2)  # (..., bodies, 4)
        parent_pos = xp.stack([positions[p] for p in parents], -2)
        body_pos = parent_pos + rotate(parent_rot, offsets)
        body_rot = multiply(parent_rot, xp.stack([local[i] for i in bodies], -2))
        positions |= {body: body_pos[..., i, :] for i, body in enumerate(bodies)}
        rotations |= {body: body_rot[..., i, :] for i, body in enumerate(bodies)}
    order = range(len(skeleton.bodies))
    return xp.stack([positions[i] for i in order], -2), xp.stack([rotations[i] for i in order], -2)


def joint_rotations(skeleton: Skeleton, joint_pos: Array, balls: Array) -> list[Array]:
    """Each body's rotation against its parent, the identity without a joint: (..., J), (..., balls,
    4) -> B times (..., 4)."""
    ball = 0
    fixed = from_axis_angle("x", namespace(joint_pos).zeros_like(joint_pos[..., 0]))
    local = [fixed] * len(skeleton.bodies)
    for joint in skeleton.joints:
        body = skeleton.bodies.index(joint.body)
        if len(joint.axes) == 3:
            local[body] = balls[..., ball, :]
            ball += 1
        else:
            local[body] = from_axis_angle(joint.axes, joint_pos[..., joint.start])
    return local


def lowest_points(skeleton: Skeleton, state: CharacterState) -> Array:
    """Height of the lowest point of each body's surface, (..., B) m."""
    poses = forward(skeleton, state.root_pos, state.root_rot, state.joint_pos)
    return lowest_points_of(skeleton, poses, range(len(skeleton.bodies)))


def lowest_points_of(
    skeleton: Skeleton, poses: tuple[Array, Array], bodies: Sequence[int]
) -> Array:
    """Height of the lowest point of the surface of each of `bodies`, (..., len(bodies)) m, given
    the `poses` of all (`forward`)."""
    positions, rotations = poses
    xp = namespace(positions)
    heights: dict[int, list[Array]] = {body: [] for body in bodies}
    for body, x, y, z, radius in skeleton.surface:
        if body in heights:
            offset = _convert(np.array([x, y, z]), positions)
            point = positions[..., body, :] + rotate(rotations[..., body, :], offset)
            heights[body].append(point[..., 2] - radius)
    return xp.stack([xp.amin(xp.stack(each, -1), -1) for each in heights.values()], -1)


def _convert(constant: np.ndarray, like: Array) -> Array:
    """`constant` as an array of the library and type of `like`."""
    xp = namespace(like)
    if xp is np:
        return constant.astype(like.dtype)
    return xp.tensor(constant, dtype=like.dtype, device=like.device)
