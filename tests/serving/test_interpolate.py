"""Paths on the latent sphere: endpoints, even spacing, clip names; and the clips' latents."""

import itertools

import numpy as np
import pytest

from serving.api import sphere
from tests.serving.local import floats, problem, skill_rows

A, B, C = skill_rows(3)


def test_path_is_evenly_spaced_on_sphere_with_exact_endpoints():
    found = sphere.path(np.array([A, B, C]), 41)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found[[0, -1]], [A, C], atol=1e-6)
    steps = [sphere.angle(a, b) for a, b in itertools.pairwise(found)]
    whole = sphere.angle(A, B) + sphere.angle(B, C)
    corner = sorted(steps)[0]  # the one step that cuts the corner at B is shorter
    np.testing.assert_allclose(sorted(steps)[1:], whole / 40, rtol=1e-4)
    assert corner <= whole / 40 + 1e-6


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_between_returns_the_given_fraction_of_the_angle(share):
    point = sphere.between(A, B, share)
    assert sphere.angle(A, point) == pytest.approx(share * sphere.angle(A, B), abs=1e-4)


def test_path_between_equal_points_is_constant():
    np.testing.assert_allclose(sphere.path(np.array([A, A, A]), 5), np.tile(A, (5, 1)), atol=1e-6)


def test_interpolate_between_rows_and_clips(service):
    body = {"path": ["walk", B.tolist(), (5 * C).tolist()], "steps": 7}
    found = service.post("/interpolate", json=body).json()
    walk = np.eye(8, dtype=np.float32)[0]
    np.testing.assert_allclose(
        floats(found["z"]), sphere.path(np.array([walk, B, C]), 7), atol=1e-6
    )
    assert found["skill"]["name"] == "humanoid"
    assert found["z_normalised"] is True
    body["path"][2] = C.tolist()
    assert service.post("/interpolate", json=body).json()["z_normalised"] is False


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"path": ["walk"], "steps": 3}, 422, "wrong_shape", "path"),
        ({"path": "walk", "steps": 3}, 422, "wrong_shape", "path"),
        ({"path": ["walk"] * 65, "steps": 3}, 422, "wrong_shape", "path"),
        ({"path": ["walk", "fly"], "steps": 3}, 404, "unknown_clip", "path[1]"),
        ({"path": ["walk", [1.0]], "steps": 3}, 422, "wrong_shape", "path[1]"),
        ({"path": ["walk", [[1.0] * 8]], "steps": 3}, 422, "wrong_shape", "path[1]"),
        ({"path": ["walk", [0.0] * 8], "steps": 3}, 422, "not_a_direction", "path[1]"),
        ({"path": ["walk", [-1.0] + [0.0] * 7], "steps": 3}, 422, "no_one_path", "path[1]"),
        ({"path": ["walk", None], "steps": 3}, 422, "wrong_type", "path[1]"),
        ({"path": ["walk", "walk"], "steps": 1}, 422, "wrong_type", "steps"),
        ({"path": ["walk", "walk"], "steps": 10**9}, 422, "wrong_type", "steps"),
        ({"path": ["walk", "walk"]}, 422, "missing_field", "steps"),
    ],
)
def test_invalid_path_requests_are_refused(service, body, status, code, field):
    problem(service.post("/interpolate", json=body), status, code, field)


@pytest.mark.parametrize(
    ("path", "message"), [(["walk"] * 65, "path has 65 z"), ("walk", "path is not a list")]
)
def test_wrong_path_error_has_the_number_of_z_or_the_type(service, path, message):
    reply = service.post("/interpolate", json={"path": path, "steps": 3}).json()
    assert (reply["message"], reply["expected"]) == (message, "2 to 64 z or names")


def test_latents_route_returns_the_clips_latents(service, shared):
    found = service.get("/skills/humanoid@1/latents").json()
    clips = shared.resolve("humanoid").manifest.latent.clips
    assert found["latents"] == {name: list(z) for name, z in clips.items()}
    problem(service.get("/skills/nobody/latents"), 404, "unknown_skill", "ref")
