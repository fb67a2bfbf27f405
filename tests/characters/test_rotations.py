"""Axioms of the rotation kernels, for numpy arrays and for torch tensors alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from pretrain.characters import rotations as r

KINDS = pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
ORDERS = ["".join(p) for p in itertools.permutations("xyz")]


def quaternions(n: int, seed: int = 0) -> np.ndarray:
    q = np.random.default_rng(seed).normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def vectors(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3))


@KINDS
def test_rotating_is_multiplying_by_the_matrix(kind):
    q = kind(quaternions(50))
    v = kind(vectors(50))
    by_matrix = (r.to_matrix(q) @ v[..., None])[..., 0]
    np.testing.assert_allclose(r.rotate(q, v), by_matrix, atol=1e-12)


@KINDS
def test_product_rotates_in_turn_and_conjugate_undoes(kind):
    a = kind(quaternions(50))
    b = kind(quaternions(50, 2))
    v = kind(vectors(50))
    np.testing.assert_allclose(
        r.rotate(r.multiply(a, b), v), r.rotate(a, r.rotate(b, v)), atol=1e-12
    )
    np.testing.assert_allclose(r.rotate(r.conjugate(a), r.rotate(a, v)), v, atol=1e-12)


@KINDS
def test_tan_norm_is_the_matrix_without_its_middle_column(kind):
    q = kind(quaternions(20))
    matrix = r.to_matrix(q)
    np.testing.assert_allclose(r.tan_norm(q)[..., :3], matrix[..., 0], atol=1e-12)
    np.testing.assert_allclose(r.tan_norm(q)[..., 3:], matrix[..., 2], atol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_hinge_angles_give_the_rotation_back(order):
    q = quaternions(200)
    angles = r.to_hinges(order, q)
    rebuilt = np.array([1.0, 0, 0, 0])
    for i, axis in enumerate(order):
        rebuilt = r.multiply(
            np.broadcast_to(rebuilt, q.shape), r.from_axis_angle(axis, angles[:, i])
        )
    np.testing.assert_allclose(np.abs((rebuilt * q).sum(-1)), 1, atol=1e-9)


def test_hinge_angles_follow_a_smooth_motion_without_jumps():
    t = np.linspace(0, 6, 400)
    # the last one turns past pi
    truth = np.stack([1.2 * np.sin(t), 1.0 * np.cos(1.3 * t), 0.8 * t - 2], -1)
    q = np.array([1.0, 0, 0, 0])
    for i, axis in enumerate("xzy"):
        q = r.multiply(np.broadcast_to(q, (400, 4)), r.from_axis_angle(axis, truth[:, i]))
    angles = r.to_hinges("xzy", q)
    assert np.abs(np.diff(angles, axis=0)).max() < 0.05


def test_hinge_axes_map_rates_to_angular_velocity():
    angles = vectors(20)
    rates = vectors(20, 3)
    dt = 1e-6

    def rotation(a: np.ndarray) -> np.ndarray:
        first, second, third = (r.from_axis_angle(axis, a[:, i]) for i, axis in enumerate("xzy"))
        return r.multiply(r.multiply(first, second), third)

    turning = r.log(r.multiply(rotation(angles + rates * dt), r.conjugate(rotation(angles)))) / dt
    predicted = (r.hinge_axes("xzy", angles) @ rates[..., None])[..., 0]
    np.testing.assert_allclose(predicted, turning, atol=1e-4)


@KINDS
def test_slerp_hits_both_ends_at_constant_speed(kind):
    a = kind(quaternions(30))
    b = kind(quaternions(30, 5))
    zeros = kind(np.zeros(30))
    ones = kind(np.ones(30))
    np.testing.assert_allclose(np.abs((r.slerp(a, b, zeros) * a).sum(-1)), 1, atol=1e-9)
    np.testing.assert_allclose(np.abs((r.slerp(a, b, ones) * b).sum(-1)), 1, atol=1e-9)
    middle = r.slerp(a, b, zeros + 0.5)
    np.testing.assert_allclose(
        np.abs((middle * a).sum(-1)), np.abs((middle * b).sum(-1)), atol=1e-9
    )


def test_heading_frame_is_where_the_character_faces():
    yaw = np.array([0.3, np.pi, -2.0])
    lean = r.multiply(r.from_axis_angle("z", yaw), r.from_axis_angle("y", np.full(3, 0.4)))
    forward = np.stack([np.cos(yaw), np.sin(yaw), np.full(3, 0.7)], -1)
    np.testing.assert_allclose(
        r.to_heading_frame(r.heading_direction(lean), forward), [[1, 0, 0.7]] * 3, atol=1e-9
    )


def test_looking_straight_up_stays_finite():
    up = r.from_axis_angle("y", np.array([-np.pi / 2]))
    assert np.isfinite(r.heading_direction(up)).all()
