"""A MuJoCo humanoid driven for 10 s purely over HTTP: the walk clip's z from /encode, every action
from /act."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from pretrain.motion.fetch import fetched
from pretrain.motion.importers import read_clip
from serving.client import Client
from skills_store import places
from skills_store.store import BUNDLED
from tests.server import running_service

SECONDS = 10.0
WALK = "humanoid3d_walk"


def flat_state(data: mujoco.MjData) -> np.ndarray:
    """qpos and qvel in the layout that the skill's manifest names; a free joint's rotation rate is
    body-local."""
    rotation_rate = np.zeros(3)
    mujoco.mju_rotVecQuat(rotation_rate, data.qvel[3:6], data.qpos[3:7])
    return np.concatenate(
        [data.qpos[:7], data.qvel[:3], rotation_rate, data.qpos[7:], data.qvel[6:]]
    ).astype(np.float32)


def drive(client: Client, z: np.ndarray, start: np.ndarray, body: dict) -> np.ndarray:
    """States at the control rate, (T, 69), of the published body under the published policy."""
    model = mujoco.MjModel.from_xml_string(body["mjcf"])
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([start[:7], start[13:41]])
    local = np.zeros(3)
    mujoco.mju_rotVecQuat(local, start[10:13].astype(float), start[3:7] * [1, -1, -1, -1])
    data.qvel[:] = np.concatenate([start[7:10], local, start[41:]])
    states = []
    for _ in range(round(SECONDS / body["control_dt"])):
        states.append(flat_state(data))
        data.ctrl[:] = client.act(states[-1], z)
        mujoco.mj_step(model, data, nstep=round(body["control_dt"] / model.opt.timestep))
    return np.stack(states)


@pytest.fixture(scope="module")
def walked(skeleton) -> tuple[np.ndarray, np.ndarray]:
    """The states of the simulated humanoid, and those of the clip."""
    path = fetched(places.clips()) / f"{WALK}.txt"
    clip = read_clip(path.read_bytes(), path.name, skeleton).states.flatten().astype(np.float32)
    with running_service(BUNDLED) as url, Client(url) as client:
        z = client.encode_file(path).pooled
        body = client.skill("humanoid@latest")
        return drive(client, z, clip[len(clip) // 2], body), clip


def test_pelvis_stays_above_65_cm(walked):
    states, _ = walked
    assert states[:, 2].min() > 0.65


def test_motion_matches_clip_speed_pose_and_knee_range(walked):
    states, clip = walked
    second = slice(30, None)  # without the first second, which starts from the clip
    speed = np.linalg.norm(states[second, 7:9], axis=-1).mean()
    assert speed == pytest.approx(np.linalg.norm(clip[:, 7:9], axis=-1).mean(), rel=0.5)
    mean_error = np.abs(states[second, 13:41].mean(0) - clip[:, 13:41].mean(0)).mean()
    assert mean_error < 0.15  # rad, over the joints
    knee = states[second, 13 + 17]
    assert np.ptp(knee) > 0.5 * np.ptp(clip[:, 13 + 17])  # the feet step instead of sliding
