"""A library imported from a peer's checkpoint, served."""

import pytest
import torch

from skills_store.checkpoints.importer import publish
from skills_store.store import Store
from tests.serving.local import problem
from tests.skills_store.checkpoints.test_checkpoints import ase


@pytest.fixture
def imported_store(tmp_path):
    torch.save(ase("humanoid_sword_shield"), tmp_path / "model.pth")
    (tmp_path / "body.xml").write_text("<mujoco model='mine'/>")
    store = Store(tmp_path / "store")
    publish(store, tmp_path / "model.pth", "knight", "X", tmp_path / "body.xml")
    return store


def test_imported_library_acts_on_peer_observations_only(imported_store, serve):
    service = serve(imported_store.root, skill="knight")
    assert service.get("/readyz").json()["status"] == "ready"
    width = imported_store.resolve("knight").manifest.graphs["policy"].input("state").width
    body = {"state": [0.0] * width, "z": [1.0] + [0.0] * 63}
    response = service.post("/act", json=body)
    assert response.status_code == 200
    assert len(response.json()["targets"]) == 31
    clip = {"frames": [[0.0] * width] * 12}
    problem(service.post("/encode", json=clip), 422, "wrong_kind", "skill")
