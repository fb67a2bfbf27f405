"""The page that plays clips, with viser where it is installed."""

from __future__ import annotations

import socket
import sys
from urllib.request import urlopen

import numpy as np
import pytest

from pretrain.characters.character import load_character
from pretrain.characters.mujoco_bindings import mujoco
from pretrain.motion.__main__ import main
from pretrain.motion.browser import ClipViewer, make_mesh
from pretrain.motion.files import load_clips


@pytest.fixture(scope="module")
def clips():
    return load_clips("everyday", "humanoid")[:3]


@pytest.fixture
def viewer(clips):
    pytest.importorskip("viser", reason="no viser here")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    viewer = ClipViewer(clips, port=port)
    yield viewer
    viewer.server.stop()


def test_the_page_is_served_on_this_machine_alone(viewer):
    assert viewer.url.startswith("http://127.0.0.1:")
    assert urlopen(viewer.url, timeout=10).status == 200


def test_bodies_stand_as_in_the_chosen_frame(viewer, clips):
    viewer.choice.value = list(viewer.clips)[2]
    viewer.choose()
    viewer.frame.value = 7
    viewer.show()
    positions, rotations = clips[2].world_poses
    np.testing.assert_allclose([body.position for body in viewer.bodies], positions[7], atol=1e-6)
    np.testing.assert_allclose([body.wxyz for body in viewer.bodies], rotations[7], atol=1e-6)


def test_a_clip_chosen_at_the_first_frame_is_shown(viewer, clips):
    viewer.choice.value = list(viewer.clips)[2]
    positions, _ = clips[2].world_poses
    np.testing.assert_allclose([body.position for body in viewer.bodies], positions[0], atol=1e-6)


def test_in_place_the_root_stays_over_the_origin(viewer, clips):
    viewer.choice.value = list(viewer.clips)[2]
    viewer.in_place.value = True
    viewer.frame.value = len(clips[2]) - 1
    viewer.show()
    np.testing.assert_allclose(viewer.bodies[0].position[:2], 0, atol=1e-6)
    assert viewer.bodies[0].position[2] == pytest.approx(clips[2].root_pos[-1, 2])


def test_a_shorter_clip_begins_at_its_first_frame(viewer, clips):
    viewer.frame.value = len(clips[0]) - 1
    viewer.choice.value = list(viewer.clips)[1]
    viewer.choose()
    assert viewer.frame.value == 0
    assert viewer.frame.max == len(clips[1]) - 1


def test_shapes_have_the_sizes_of_the_model():
    pytest.importorskip("trimesh", reason="no trimesh here, which comes with viser")
    model = mujoco.MjModel.from_xml_string(load_character("humanoid").mjcf)
    lengths = {
        mujoco.mjtGeom.mjGEOM_SPHERE: lambda size: [2 * size[0]] * 3,
        mujoco.mjtGeom.mjGEOM_CAPSULE: lambda size: [
            2 * size[0],
            2 * size[0],
            2 * (size[0] + size[1]),
        ],
        mujoco.mjtGeom.mjGEOM_BOX: lambda size: list(2 * size),
    }
    shapes = np.flatnonzero(model.geom_bodyid > 0)
    assert len(shapes) > 10
    for geom in shapes:
        vertices, faces = make_mesh(model, int(geom))
        expected = lengths[mujoco.mjtGeom(model.geom_type[geom])](model.geom_size[geom])
        np.testing.assert_allclose(np.ptp(vertices, axis=0), expected, rtol=0.02)
        np.testing.assert_allclose(vertices.max(0), -vertices.min(0), atol=1e-9)
        assert faces.max() < len(vertices)


def test_missing_viser_error_has_the_install_command(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["preview", "everyday", "--browser"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install viser" in line
