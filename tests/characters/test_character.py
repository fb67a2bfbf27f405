"""The body as compiled, and our kinematics against the engine's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from pretrain.characters import character
from pretrain.characters.character import load_character
from pretrain.characters.kinematics import forward, lowest_points
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import layout, unflatten
from pretrain.sim.mujoco_cpu import compile_model


def poses(skeleton: Skeleton, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(n, 4))
    joints = rng.uniform(skeleton.lower, skeleton.upper, size=(n, skeleton.num_hinges))
    return rng.normal(size=(n, 3)), turn / np.linalg.norm(turn, axis=-1, keepdims=True), joints


def test_fifteen_bodies_and_28_hinges(skeleton):
    assert len(skeleton.bodies) == 15
    assert skeleton.num_hinges == 28
    assert sum(len(joint.axes) == 3 for joint in skeleton.joints) == 8


@pytest.mark.parametrize("axis", ["0 -1 0", "0.6 0.8 0"])
def test_a_hinge_about_another_axis_than_x_y_or_z_is_refused(axis):
    body = f'<body name="b"><joint name="bend" axis="{axis}"/><geom size="0.1"/></body>'
    root = f'<body name="a"><freejoint/><geom size="0.1"/>{body}</body>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{root}</worldbody></mujoco>")
    with pytest.raises(ValueError, match="hinge bend has the axis"):
        character._read_skeleton("two", model, ("b",), ())


def test_hip_hinge_order_is_xzy_to_avoid_gimbal_lock(skeleton):
    orders = {joint.body: joint.axes for joint in skeleton.joints}
    assert orders["right_thigh"] == orders["left_thigh"] == "xzy"


def test_drive_limits_allow_the_joint_speeds_of_locomotion(humanoid, library):
    """A drive at its limit turns a free joint at torque_limit / damping."""
    fastest = np.array(humanoid.torque_limit) / np.array(humanoid.damping)
    required = unflatten(library.frames).joint_vel.abs().quantile(0.98, 0).numpy()
    slow = {
        hinge: (f, a)
        for hinge, f, a in zip(humanoid.skeleton.hinges, fastest, required, strict=True)
        if f < a
    }
    assert not slow


def test_body_positions_match_the_engine(humanoid, skeleton):
    model = compile_model(humanoid)
    data = mujoco.MjData(model)
    root_pos, root_rot, joint_pos = poses(skeleton, 20)
    positions, rotations = forward(skeleton, root_pos, root_rot, joint_pos)
    for i in range(20):
        data.qpos[:] = np.concatenate([root_pos[i], root_rot[i], joint_pos[i]])
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(positions[i], data.xpos[1:], atol=1e-9)
        np.testing.assert_allclose(np.abs((rotations[i] * data.xquat[1:]).sum(-1)), 1, atol=1e-9)


def test_lowest_point_is_where_the_engine_touches_the_floor(humanoid, skeleton):
    """Drop a standing body by its lowest point's height: it touches; a millimeter higher it does
    not."""
    model = compile_model(humanoid)
    data = mujoco.MjData(model)
    root_pos, root_rot, joint_pos = poses(skeleton, 10)
    state = unflatten(
        np.concatenate([root_pos, root_rot, np.zeros((10, 6)), joint_pos, 0 * joint_pos], -1)
    )
    low = lowest_points(skeleton, state).min(-1)
    floor = model.geom("floor").id
    for i in range(10):
        for gap, touches in ((-1e-3, True), (1e-3, False)):
            data.qpos[:] = np.concatenate(
                [root_pos[i] - [0, 0, low[i] - gap], root_rot[i], joint_pos[i]]
            )
            mujoco.mj_forward(model, data)
            ground = [c for c in data.contact if floor in c.geom]
            assert bool(ground) is touches


def test_mirroring_twice_is_the_identity(skeleton):
    source, sign = skeleton.mirrored_hinges
    x = np.random.default_rng(0).normal(size=28)
    np.testing.assert_array_equal((sign * (sign * x[source])[source]), x)


def test_limits_are_mirror_images(skeleton):
    source, sign = skeleton.mirrored_hinges
    lower = np.array(skeleton.lower)
    upper = np.array(skeleton.upper)
    mirrored = np.sort(np.stack([sign * lower[source], sign * upper[source]]), axis=0)
    np.testing.assert_allclose(mirrored, np.stack([lower, upper]), atol=1e-6)


def test_skeleton_survives_json(skeleton):
    assert Skeleton.from_dict(json.loads(json.dumps(skeleton.to_dict()))) == skeleton


def test_layout_tiles_the_flat_state(skeleton):
    parts = layout(skeleton.num_hinges)
    vector = np.arange(69.0)
    state = unflatten(vector)
    np.testing.assert_array_equal(state.flatten(), vector)
    assert [part.name for part in parts][:2] == ["root_pos", "root_rot"]
    assert parts[-1].stop == 69


def test_unknown_character_lists_what_exists():
    with pytest.raises(KeyError, match="humanoid"):
        load_character("dragon")


def test_leg_mask_is_hip_knee_and_ankle_hinges(skeleton):
    legs = {name for name, leg in zip(skeleton.hinges, skeleton.legs, strict=True) if leg}
    assert legs == {
        name for name in skeleton.hinges if any(part in name for part in ("hip", "knee", "ankle"))
    }


def test_failed_mujoco_import_names_the_remedy(tmp_path):
    broken = tmp_path / "mujoco"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('no bindings')\n")
    where = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    run = subprocess.run(
        [sys.executable, "-c", "import pretrain.characters.character"],
        env={**os.environ, "PYTHONPATH": where},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "no bindings; if mujoco was upgraded from 3 to 4: pip uninstall" in run.stderr


JOINT_LIMIT = '<joint damping="2" armature="0.01" actuatorfrcrange="-50 50"/>'


@pytest.mark.parametrize(
    ("limit", "moved"),
    [
        ('forcerange="-50 50"', ""),
        ('<joint damping="2" armature="0.01"/>', JOINT_LIMIT),
    ],
)
def test_a_torque_limit_that_is_not_at_its_actuator_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, moved: str
) -> None:
    """The manifest is read from the actuator; elsewhere the limit would be published as 0."""
    text = (character.ASSETS / "humanoid.xml").read_text(encoding="utf-8")
    assert limit in text
    (tmp_path / "humanoid.xml").write_text(text.replace(limit, moved), encoding="utf-8")
    monkeypatch.setattr(character, "ASSETS", tmp_path)
    with pytest.raises(
        ValueError, match="humanoid: neck_x needs its torque limit as the forcerange"
    ):
        character.load_character.__wrapped__("humanoid")
