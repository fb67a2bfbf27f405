"""Where the bodies are, given where the root is and how the hinges stand. Pure; numpy or torch."""

from __future__ import annotations

import numpy as np

from pretrain.characters.rotations import AXIS, Array, from_axis_angle, multiply, namespace, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState


def ball_rotations(skeleton: Skeleton, joint_pos: Array) -> Array:
    """Turns of the three-hinge joints against their parents, all at once: (..., J) -> (..., balls, 4)."""
    balls = [joint for joint in skeleton.joints if len(joint.axes) == 3]
    xp = namespace(joint_pos)
    half = 0.5 * xp.stack([joint_pos[..., j.start : j.stop] for j in balls], -2)
    axes = np.array([[np.eye(3)[AXIS[a]] for a in j.axes] for j in balls])  # (balls, 3 hinges, 3)
    cosine, sine = xp.cos(half)[..., None], xp.sin(half)[..., None]
    turns = xp.concatenate([cosine, sine * _like(joint_pos, axes)], -1)  # (..., balls, 3 hinges, 4)
    return multiply(multiply(turns[..., 0, :], turns[..., 1, :]), turns[..., 2, :])


def forward(skeleton: Skeleton, root_pos: Array, root_rot: Array, joint_pos: Array) -> tuple[Array, Array]:
    """Body origins (..., B, 3) and rotations (..., B, 4) in the frame that the root is given in."""
    local = joint_rotations(skeleton, joint_pos)
    positions, rotations = [root_pos], [root_rot]
    for i, body in enumerate(skeleton.bodies[1:], start=1):
        parent = skeleton.parents[i]
        offset = _like(root_pos, np.array(skeleton.offsets[i]))
        positions.append(positions[parent] + rotate(rotations[parent], offset))
        rotations.append(multiply(rotations[parent], local[body]) if body in local else rotations[parent])
    xp = namespace(root_pos)
    return xp.stack(positions, -2), xp.stack(rotations, -2)


def joint_rotations(skeleton: Skeleton, joint_pos: Array) -> dict[str, Array]:
    """Each jointed body's turn against its parent: (..., J) -> {body: (..., 4)}."""
    balls = ball_rotations(skeleton, joint_pos)
    of_body, ball = {}, 0
    for joint in skeleton.joints:
        if len(joint.axes) == 3:
            of_body[joint.body] = balls[..., ball, :]
            ball += 1
        else:
            of_body[joint.body] = from_axis_angle(joint.axes, joint_pos[..., joint.start])
    return of_body


def lowest_point(skeleton: Skeleton, state: CharacterState) -> Array:
    """Height of the lowest point of the body's surface, (...) m."""
    positions, rotations = forward(skeleton, state.root_pos, state.root_rot, state.joint_pos)
    heights = []
    for body, x, y, z, radius in skeleton.surface:
        point = positions[..., body, :] + rotate(rotations[..., body, :], _like(state.root_pos, np.array([x, y, z])))
        heights.append(point[..., 2] - radius)
    xp = namespace(state.root_pos)
    return xp.amin(xp.stack(heights, -1), -1)


def _like(x: Array, constant: np.ndarray) -> Array:
    """`constant` as the same kind of array as x."""
    xp = namespace(x)
    return constant.astype(x.dtype) if xp is np else xp.tensor(constant, dtype=x.dtype, device=x.device)
