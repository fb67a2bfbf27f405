"""A library imported from a peer's checkpoint, served."""

import pytest
import torch

from skills_store.checkpoints.importer import publish
from skills_store.store import Store
from tests.serving.local import problem
from tests.skills_store.checkpoints.test_checkpoints import ase


@pytest.fixture
def knights(tmp_path):
    torch.save(ase("humanoid_sword_shield"), tmp_path / "model.pth")
    (tmp_path / "body.xml").write_text("<mujoco model='mine'/>")
    store = Store(tmp_path / "store")
    publish(store, tmp_path / "model.pth", "knight", "X", tmp_path / "body.xml")
    return store


def test_it_acts_on_the_peers_observations_and_encodes_no_motion(knights, serve):
    served = serve(knights.root, skill="knight")
    assert served.get("/readyz").json()["status"] == "ready"
    width = knights.resolve("knight").manifest.graphs["policy"].input("state").width
    asked = {"state": [0.0] * width, "z": [1.0] + [0.0] * 63}
    answer = served.post("/act", json=asked)
    assert answer.status_code == 200
    assert len(answer.json()["targets"]) == 31
    clip = {"frames": [[0.0] * width] * 12}
    problem(served.post("/encode", json=clip), 422, "wrong_kind", "skill")
