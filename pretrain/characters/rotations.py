"""Rotation kernels: unit quaternions wxyz, right-handed, radians. Independent of bodies.

Every kernel takes numpy arrays or torch tensors and returns the same kind, batched over leading
axes: importers and the service run without torch, training with it. Only calls with the same names
in both libraries are used."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray or torch.Tensor; a kernel never mixes them

AXIS = {"x": 0, "y": 1, "z": 2}


def namespace(x: Array) -> Any:
    """The library that `x` belongs to. torch is not imported here: if `x` is a tensor, it is
    loaded."""
    return np if isinstance(x, np.ndarray) else sys.modules["torch"]


def _unstack(x: Array) -> list[Array]:
    """The components along the last axis, (..., n) -> n times (...)."""
    return [x[..., i] for i in range(x.shape[-1])]


def normalize(q: Array) -> Array:
    """q / |q|, (..., n)."""
    return q / namespace(q).sqrt((q * q).sum(-1))[..., None]


def conjugate(q: Array) -> Array:
    """Inverse of a unit quaternion, (..., 4)."""
    return namespace(q).stack([q[..., 0], -q[..., 1], -q[..., 2], -q[..., 3]], -1)


def multiply(a: Array, b: Array) -> Array:
    """Hamilton product: rotate by b, then by a, in a's outer frame. (..., 4), (..., 4) -> (...,
    4)."""
    aw, ax, ay, az = _unstack(a)
    bw, bx, by, bz = _unstack(b)
    return namespace(a).stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        -1,
    )


def rotate(q: Array, v: Array) -> Array:
    """v in q's inner frame -> v in its outer frame. (..., 4), (..., 3) -> (..., 3), leading axes
    broadcast."""
    w, x, y, z = _unstack(q)
    a, b, c = _unstack(v)
    # t = 2 u x v; v + w t + u x t
    ta = 2 * (y * c - z * b)
    tb = 2 * (z * a - x * c)
    tc = 2 * (x * b - y * a)
    return namespace(q).stack(
        [a + w * ta + y * tc - z * tb, b + w * tb + z * ta - x * tc, c + w * tc + x * tb - y * ta],
        -1,
    )


def from_axis_angle(axis: str, angle: Array) -> Array:
    """Rotation by `angle` (...) about the coordinate axis "x", "y" or "z" -> (..., 4)."""
    xp = namespace(angle)
    half = 0.5 * angle
    parts = [xp.cos(half)] + [xp.zeros_like(half)] * 3
    parts[1 + AXIS[axis]] = xp.sin(half)
    return xp.stack(parts, -1)


def to_matrix(q: Array) -> Array:
    """(..., 4) -> (..., 3, 3), columns are the inner axes in the outer frame."""
    xp = namespace(q)
    w, x, y, z = _unstack(q)
    rows = [
        xp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
        xp.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
        xp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
    ]
    return xp.stack(rows, -2)


def tan_norm(q: Array) -> Array:
    """The rotated x axis and the rotated z axis: a rotation without jumps. (..., 4) -> (..., 6)."""
    xp = namespace(q)
    w, x, y, z = _unstack(q)
    parts = [
        1 - 2 * (y * y + z * z),
        2 * (x * y + w * z),
        2 * (x * z - w * y),
        2 * (x * z + w * y),
        2 * (y * z - w * x),
        1 - 2 * (x * x + y * y),
    ]
    return xp.stack(parts, -1)


def up_axis(q: Array) -> Array:
    """The direction of a body's z axis, (..., 4) -> (..., 3)."""
    return tan_norm(q)[..., 3:]


def heading_direction(q: Array) -> Array:
    """Unit vector in the ground plane along the rotated x axis, (..., 4) -> (..., 2)."""
    xp = namespace(q)
    w, x, y, z = _unstack(q)
    c = 1 - 2 * (y * y + z * z)
    s = 2 * (x * y + w * z)
    length = xp.sqrt(c * c + s * s + 1e-12)  # finite also where the axis points straight up
    return xp.stack([c / length, s / length], -1)


def heading_rotation(q: Array) -> Array:
    """Rotation about z from x to the heading of `q`, (..., 4)."""
    ahead = heading_direction(q)
    return from_axis_angle("z", namespace(q).arctan2(ahead[..., 1], ahead[..., 0]))


def to_heading_frame(heading: Array, v: Array) -> Array:
    """World vectors -> heading frame. (..., 2), (..., 3) -> (..., 3)."""
    c, s = _unstack(heading)
    x, y, z = _unstack(v)
    return namespace(v).stack([c * x + s * y, c * y - s * x, z], -1)


def from_heading_frame(heading: Array, v: Array) -> Array:
    """The inverse of `to_heading_frame`. (..., 2), (..., 3) -> (..., 3)."""
    c, s = _unstack(heading)
    x, y, z = _unstack(v)
    return namespace(v).stack([c * x - s * y, s * x + c * y, z], -1)


def log(q: Array) -> Array:
    """Rotation vector of the shorter way round, (..., 4) -> (..., 3) rad."""
    xp = namespace(q)
    q = xp.where(q[..., :1] < 0, -q, q)
    sine = xp.sqrt((q[..., 1:] * q[..., 1:]).sum(-1))[..., None]
    angle = 2 * xp.arctan2(sine, q[..., :1])
    return xp.where(sine > 1e-8, q[..., 1:] * angle / (sine + 1e-30), 2 * q[..., 1:])


def angle_between(a: Array, b: Array) -> Array:
    """Angle of the rotation from a to b, the shorter way round, (..., 4), (..., 4) -> (...) rad."""
    return 2 * namespace(a).arccos(abs((a * b).sum(-1)).clip(0.0, 1.0))


def slerp(a: Array, b: Array, t: Array) -> Array:
    """Constant-speed path from a (t = 0) to b (t = 1), the shorter way. (..., 4), (..., 4), (...)
    -> (..., 4)."""
    xp = namespace(a)
    dot = (a * b).sum(-1)[..., None]
    b = xp.where(dot < 0, -b, b)
    angle = xp.arccos(abs(dot).clip(-1.0, 1.0))
    sine = xp.sin(angle)
    t = t[..., None]
    near = sine < 1e-4  # the straight line and the arc agree to 1e-9 there
    safe = xp.where(near, xp.ones_like(sine), sine)
    wa = xp.where(near, 1 - t, xp.sin((1 - t) * angle) / safe)
    wb = xp.where(near, t, xp.sin(t * angle) / safe)
    return normalize(wa * a + wb * b)


def to_hinges(axes: str, q: np.ndarray) -> np.ndarray:
    """Angles of three serial hinges about `axes` (a permutation of xyz), continuous along the first
    axis of q.

    (T, 4) -> (T, 3). Two triples describe every rotation; the first frame takes the smaller one,
    each later frame the one nearer to the frame before, unwrapped. (numpy only, for importers.)"""
    i, j, k = (AXIS[a] for a in axes)
    even = (j - i) % 3 == 1
    e = 1.0 if even else -1.0
    m = to_matrix(q)
    b = np.arcsin(np.clip(e * m[:, i, k], -1, 1))
    a = np.arctan2(-e * m[:, j, k], m[:, k, k])
    c = np.arctan2(-e * m[:, i, j], m[:, i, i])
    triples = np.stack([[a, b, c], [a + np.pi, np.pi - b, c + np.pi]]).transpose(2, 0, 1)
    chosen = triples[np.arange(len(q)), _nearest_triples(triples)]
    before = np.concatenate([np.zeros((1, 3)), chosen[:-1]])
    return chosen + 2 * np.pi * np.cumsum(np.round((before - chosen) / (2 * np.pi)), axis=0)


def _nearest_triples(triples: np.ndarray) -> list[int]:
    """The triple that each frame takes, (T, 2, 3) rad -> T of 0 or 1: the one nearer to the
    previous frame's, modulo whole turns; in the first frame, nearer to 0."""
    before = np.concatenate([np.zeros((1, 2, 3)), triples[:-1]])
    gap = triples[:, None] - before[:, :, None]  # (T, 2, 2, 3): of before, of now
    far = np.abs(gap - 2 * np.pi * np.round(gap / (2 * np.pi))).sum(-1)
    nearest = far.argmin(-1).tolist()
    chosen = [0]
    for choices in nearest:
        chosen.append(choices[chosen[-1]])
    return chosen[1:]


def hinge_axes(axes: str, angles: Array) -> Array:
    """The directions of three serial hinges in the parent's frame, as columns. (..., 3) ->
    (..., 3, 3)."""
    xp = namespace(angles)
    unit = [xp.zeros_like(angles) for _ in axes]
    for column, axis in zip(unit, axes, strict=True):
        column[..., AXIS[axis]] = 1.0
    first = from_axis_angle(axes[0], angles[..., 0])
    second = multiply(first, from_axis_angle(axes[1], angles[..., 1]))
    return xp.stack([unit[0], rotate(first, unit[1]), rotate(second, unit[2])], -1)
