"""Where the bodies are, given where the root is and how the hinges stand. Pure; numpy or torch."""

from __future__ import annotations

import numpy as np

from pretrain.characters.rotations import Array, from_axis_angle, multiply, namespace, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState


def ball_rotations(skeleton: Skeleton, joint_pos: Array) -> Array:
    """Turns of the three-hinge joints against their parents, all at once: (..., J) -> (..., balls, 4)."""
    xp = namespace(joint_pos)
    half = 0.5 * xp.stack([joint_pos[..., j.start : j.stop] for j in skeleton.balls], -2)
    cosine, sine = xp.cos(half)[..., None], xp.sin(half)[..., None]
    turns = xp.concatenate([cosine, sine * _like(joint_pos, skeleton.ball_axes)], -1)  # (..., balls, 3 hinges, 4)
    return multiply(multiply(turns[..., 0, :], turns[..., 1, :]), turns[..., 2, :])


def forward(skeleton: Skeleton, root_pos: Array, root_rot: Array, joint_pos: Array) -> tuple[Array, Array]:
    """Body origins (..., B, 3) and rotations (..., B, 4) in the frame that the root is given in."""
    return chain_rotations(
        skeleton, root_pos, root_rot, joint_rotations(skeleton, joint_pos, ball_rotations(skeleton, joint_pos))
    )


def chain_rotations(skeleton: Skeleton, root_pos: Array, root_rot: Array, local: list[Array]) -> tuple[Array, Array]:
    """`forward`, from each body's turn against its parent.

    A generation of bodies at a time: body by body, most of the time would go into calling kernels, not into running them.
    """
    xp = namespace(root_pos)
    positions, rotations = {0: root_pos}, {0: root_rot}
    for bodies in skeleton.generations:
        parents = [skeleton.parents[i] for i in bodies]
        offsets = _like(root_pos, np.array([skeleton.offsets[i] for i in bodies]))
        held = xp.stack([rotations[p] for p in parents], -2)  # (..., bodies, 4)
        moved = xp.stack([positions[p] for p in parents], -2) + rotate(held, offsets)
        turned = multiply(held, xp.stack([local[i] for i in bodies], -2))
        positions |= {body: moved[..., i, :] for i, body in enumerate(bodies)}
        rotations |= {body: turned[..., i, :] for i, body in enumerate(bodies)}
    each = range(len(skeleton.bodies))
    return xp.stack([positions[i] for i in each], -2), xp.stack([rotations[i] for i in each], -2)


def joint_rotations(skeleton: Skeleton, joint_pos: Array, balls: Array) -> list[Array]:
    """Each body's turn against its parent, none where there is no joint: (..., J), (..., balls, 4) -> B times (..., 4)."""
    ball = 0
    fixed = from_axis_angle("x", namespace(joint_pos).zeros_like(joint_pos[..., 0]))
    turns = [fixed] * len(skeleton.bodies)
    for joint in skeleton.joints:
        body = skeleton.bodies.index(joint.body)
        if len(joint.axes) == 3:
            turns[body] = balls[..., ball, :]
            ball += 1
        else:
            turns[body] = from_axis_angle(joint.axes, joint_pos[..., joint.start])
    return turns


def lowest_point(skeleton: Skeleton, state: CharacterState) -> Array:
    """Height of the lowest point of the body's surface, (...) m."""
    return namespace(state.root_pos).amin(lowest_points(skeleton, state), -1)


def lowest_points(skeleton: Skeleton, state: CharacterState) -> Array:
    """Height of the lowest point of each body's surface, (..., B) m."""
    xp = namespace(state.root_pos)
    positions, rotations = forward(skeleton, state.root_pos, state.root_rot, state.joint_pos)
    heights: list[list[Array]] = [[] for _ in skeleton.bodies]
    for body, x, y, z, radius in skeleton.surface:
        point = positions[..., body, :] + rotate(rotations[..., body, :], _like(state.root_pos, np.array([x, y, z])))
        heights[body].append(point[..., 2] - radius)
    return xp.stack([xp.amin(xp.stack(of_body, -1), -1) for of_body in heights], -1)


def _like(x: Array, constant: np.ndarray) -> Array:
    """`constant` as the same kind of array as x."""
    xp = namespace(x)
    return constant.astype(x.dtype) if xp is np else xp.tensor(constant, dtype=x.dtype, device=x.device)
