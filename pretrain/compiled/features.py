"""Features of states, compiled: `proprioception` and `style_frame` of `pretrain/sim/features.py`.

All kernels that call each other are in one file: numba recompiles a cached kernel if its own file
has changed, but not if the file of a function that it calls has."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.compiled.kernel import compile_kernel

F = np.float32


class Tree(NamedTuple):
    """A skeleton as arrays, one row per body."""

    parents: np.ndarray  # (B,) int64
    offsets: np.ndarray  # (B, 3) m
    first: np.ndarray  # (B,) index of its first hinge
    hinges: np.ndarray  # (B,) number of its hinges: 0, 1 or 3
    axes: np.ndarray  # (B, 3, 3) unit vectors of their axes
    column: np.ndarray  # (B,) where its joint's features begin in a style frame
    keys: np.ndarray  # (K,) key bodies
    num_features: int  # of a style frame


@cache
def make_tree(skeleton: Skeleton) -> Tree:
    """The arrays of `skeleton`."""
    bodies = len(skeleton.bodies)
    first = np.zeros(bodies, np.int64)
    hinges = np.zeros(bodies, np.int64)
    axes = np.zeros((bodies, 3, 3), F)
    column = np.zeros(bodies, np.int64)
    ball_column = 7
    hinge_column = 7 + 6 * len(skeleton.balls)
    for joint in skeleton.joints:
        body = skeleton.bodies.index(joint.body)
        first[body] = joint.start
        hinges[body] = len(joint.axes)
        axes[body, : len(joint.axes)] = np.eye(3)[["xyz".index(axis) for axis in joint.axes]]
        if len(joint.axes) == 3:
            column[body] = ball_column
            ball_column += 6
        else:
            column[body] = hinge_column
            hinge_column += 1
    keys = np.array([skeleton.bodies.index(body) for body in skeleton.key_bodies])
    return Tree(
        np.array(skeleton.parents),
        np.array(skeleton.offsets, F),
        first,
        hinges,
        axes,
        column,
        keys,
        hinge_column + 6 + 3 * len(keys),
    )


def style_frame(skeleton: Skeleton, state: CharacterState) -> Tensor:
    """As `features.style_frame`, of states (N,): (N, F)."""
    flat = state.flatten()
    tree = make_tree(skeleton)
    frames = torch.empty(len(flat), tree.num_features)
    _write_style_frames(flat.numpy(), tree, frames.numpy())
    return frames


def proprioception(state: CharacterState) -> Tensor:
    """As `features.proprioception`, of states (N,): (N, 13 + 2 J)."""
    flat = state.flatten()
    obs = torch.empty_like(flat)
    _write_observations(flat.numpy(), obs.numpy())
    return obs


@compile_kernel
def _write_style_frames(flat: np.ndarray, tree: Tree, frames: np.ndarray) -> None:
    """Style frames of flat states (N, 13 + 2 J), to `frames` (N, F)."""
    bodies = len(tree.parents)
    positions = np.empty((bodies, 3), F)
    rotations = np.empty((bodies, 4), F)
    for n in range(len(flat)):
        state = flat[n]
        frame = frames[n]
        root = (state[3], state[4], state[5], state[6])
        heading = _heading_direction(root)
        _write_root(state, root, heading, frame)
        positions[0] = F(0)
        for i in range(4):
            rotations[0, i] = root[i]
        for body in range(1, bodies):
            local = _joint_rotation(state, tree, body, frame)
            _place(tree, body, local, positions, rotations)
        end = frames.shape[1] - 3 * len(tree.keys)
        _write_vector(heading, (state[7], state[8], state[9]), frame, end - 6)
        _write_vector(heading, (state[10], state[11], state[12]), frame, end - 3)
        for k in range(len(tree.keys)):
            key = positions[tree.keys[k]]
            _write_vector(heading, (key[0], key[1], key[2]), frame, end + 3 * k)


@compile_kernel
def _write_root(state, root, heading, features) -> None:
    """Root height, and root rotation without its heading, to the first 7 of `features`."""
    tangent, normal = _tan_norm(root)
    features[0] = state[2]
    _write_vector(heading, tangent, features, 1)
    _write_vector(heading, normal, features, 4)


@compile_kernel
def _write_vector(heading, v, features, column) -> None:
    """World vector `v` in the heading frame, from `column` on."""
    c, s = heading
    x, y, z = v
    features[column] = c * x + s * y
    features[column + 1] = c * y - s * x
    features[column + 2] = z


@compile_kernel
def _joint_rotation(state, tree, body, frame):
    """The body's rotation relative to its parent; writes the joint's features to `frame`."""
    local = (F(1), F(0), F(0), F(0))
    hinges = tree.hinges[body]
    start = 13 + tree.first[body]
    for hinge in range(hinges):
        half = F(0.5) * state[start + hinge]
        sine = math.sin(half)
        axis = tree.axes[body, hinge]
        turn = (math.cos(half), sine * axis[0], sine * axis[1], sine * axis[2])
        local = _multiply(local, turn)
    column = tree.column[body]
    if hinges == 1:
        frame[column] = state[start]
    elif hinges == 3:
        tangent, normal = _tan_norm(local)
        for i in range(3):
            frame[column + i] = tangent[i]
            frame[column + 3 + i] = normal[i]
    return local


@compile_kernel
def _place(tree, body, local, positions, rotations) -> None:
    """Write a body's position and rotation; its parent's are known."""
    parent = tree.parents[body]
    around = (
        rotations[parent, 0],
        rotations[parent, 1],
        rotations[parent, 2],
        rotations[parent, 3],
    )
    offset = (tree.offsets[body, 0], tree.offsets[body, 1], tree.offsets[body, 2])
    moved = _rotate(around, offset)
    turned = _multiply(around, local)
    for i in range(3):
        positions[body, i] = positions[parent, i] + moved[i]
    for i in range(4):
        rotations[body, i] = turned[i]


@compile_kernel
def _write_observations(flat: np.ndarray, obs: np.ndarray) -> None:
    """Observations of flat states (N, 13 + 2 J), to `obs` (N, 13 + 2 J)."""
    for n in range(len(flat)):
        state = flat[n]
        row = obs[n]
        root = (state[3], state[4], state[5], state[6])
        heading = _heading_direction(root)
        _write_root(state, root, heading, row)
        _write_vector(heading, (state[7], state[8], state[9]), row, 7)
        _write_vector(heading, (state[10], state[11], state[12]), row, 10)
        row[13:] = state[13:]


@compile_kernel
def _multiply(a: tuple, b: tuple) -> tuple:
    """As `rotations.multiply`."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


@compile_kernel
def _rotate(q: tuple, v: tuple) -> tuple:
    """As `rotations.rotate`."""
    w, x, y, z = q
    a, b, c = v
    ta = 2 * (y * c - z * b)
    tb = 2 * (z * a - x * c)
    tc = 2 * (x * b - y * a)
    return (
        a + w * ta + y * tc - z * tb,
        b + w * tb + z * ta - x * tc,
        c + w * tc + x * tb - y * ta,
    )


@compile_kernel
def _tan_norm(q: tuple) -> tuple:
    """As `rotations.tan_norm`: the rotated x axis, and the rotated z axis."""
    w, x, y, z = q
    tangent = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))
    normal = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    return tangent, normal


@compile_kernel
def _heading_direction(q: tuple) -> tuple:
    """As `rotations.heading_direction`."""
    w, x, y, z = q
    c = 1 - 2 * (y * y + z * z)
    s = 2 * (x * y + w * z)
    length = math.sqrt(c * c + s * s + 1e-12)
    return c / length, s / length
