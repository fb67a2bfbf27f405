"""The service over a store that gains versions, is moved, lacks files or is damaged."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from onnxruntime import InferenceSession

from skills_store.runtime.library import SkillLibrary
from skills_store.runtime.onnx_session import Net
from skills_store.store import Store
from tests.serving.local import floats, goal_rows, problem, skill_rows, state_rows
from tests.tiny import publish_tiny, publish_tiny_controller

STATE = state_rows(1)[0]
Z = skill_rows(1)[0]
ACT = {"state": STATE.tolist(), "z": Z.tolist()}
DECIDE = {"state": STATE.tolist(), "goal": goal_rows(1)[0].tolist()}


def blob_of(store: Store, ref: str, file: str) -> Path:
    digest = store.resolve(ref).manifest.files[file].digest
    return store.root / "blobs" / "sha256" / digest.removeprefix("sha256:")


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def version_of(service, ref: str) -> int:
    return service.post("/act", json=ACT | {"skill": ref}).json()["skill"]["version"]


def test_unknown_skill_error_lists_existing_skills(service):
    found = problem(
        service.post("/act", json=ACT | {"skill": "humanoit"}), 404, "unknown_skill", "skill"
    )
    assert "humanoid" in found["expected"]
    assert "did you mean 'humanoid'" in found["message"]
    found = problem(
        service.post("/act", json=ACT | {"skill": "humanoid@7"}), 404, "unknown_version", "skill"
    )
    assert found["expected"] == "one of: 1"
    problem(
        service.post("/act", json=ACT | {"skill": "humanoid@prod"}), 404, "unknown_alias", "skill"
    )
    problem(service.post("/controllers/strike/act", json=DECIDE), 404, "unknown_skill", "name")
    problem(service.get("/skills/nobody"), 404, "unknown_skill", "ref")
    found = problem(
        service.post("/act", json=ACT | {"skill": "a/b"}), 422, "invalid_reference", "skill"
    )
    assert found["message"].startswith("'a/b' is not a reference")
    problem(service.post("/act", json=ACT | {"skill": ""}), 422, "invalid_reference", "skill")
    problem(service.get("/controllers/humanoid"), 422, "wrong_kind", "name")


def test_an_unknown_name_is_answered_with_names_of_its_kind(service):
    replies = {
        "skill": (service.post("/act", json=ACT | {"skill": "nobody"}), "humanoid"),
        "controller": (service.post("/controllers/nobody/act", json=DECIDE), "reach"),
        "model": (service.get("/v2/models/nobody"), "humanoid, reach"),
    }
    for what, (reply, exists) in replies.items():
        found = reply.json()
        assert (reply.status_code, found["code"]) == (404, "unknown_skill")
        assert found["message"] == f"no {what} 'nobody'; there are: {exists}"
        assert found["expected"] == f"one of: {exists}"


def test_replies_do_not_reveal_the_store_path(service, shared):
    for ref in ("nobody", "humanoid@9", "humanoid@prod", "a/b"):
        assert str(shared.root) not in service.post("/act", json=ACT | {"skill": ref}).text


def test_new_version_is_served_after_one_refresh(store, serve):
    service = serve(store.root)
    before = service.post("/act", json=ACT).json()
    published = publish_tiny(store, seed=1)
    service.refresh()
    after = service.post("/act", json=ACT).json()
    assert after["skill"] == {"name": "humanoid", "version": 2, "digest": published.digest}
    assert after["targets"] != before["targets"]
    assert (
        floats(after["targets"]).tolist()
        == SkillLibrary.open(store, "humanoid@2").act([STATE], [Z])[0].tolist()
    )
    assert service.post("/act", json=ACT | {"skill": "humanoid@1"}).json() == before


def test_a_moved_alias_is_followed(store, serve):
    publish_tiny(store, seed=1)
    store.alias("humanoid", "prod", 1)
    service = serve(store.root)
    assert version_of(service, "humanoid@prod") == 1
    store.alias("humanoid", "prod", 2)
    service.refresh()
    assert version_of(service, "humanoid@prod") == 2


def test_store_is_not_read_between_refreshes(store, serve):
    service = serve(store.root)
    assert version_of(service, "humanoid") == 1
    publish_tiny(store, seed=1)
    (store.root / "skills").rename(store.root / "away")
    assert version_of(service, "humanoid") == 1


def test_identical_versions_keep_distinct_numbers(store, serve):
    assert publish_tiny(store).digest == store.resolve("humanoid@1").digest
    service = serve(store.root)
    assert [version_of(service, f"humanoid@{n}") for n in (1, 2, 1)] == [1, 2, 1]


def test_a_corrupt_file_is_refused_and_the_others_are_served(store, serve):
    publish_tiny(store, name="other", seed=3)
    publish_tiny(store, seed=4)
    damage(blob_of(store, "humanoid@2", "policy.onnx"))
    service = serve(store.root)
    found = problem(service.post("/act", json=ACT), 503, "corrupt_blob", "skill")
    assert "policy.onnx of humanoid@2" in found["message"]
    problem(service.get("/readyz"), 503, "corrupt_blob")
    assert version_of(service, "humanoid@1") == 1
    assert version_of(service, "other") == 1
    assert service.post("/controllers/reach/act", json=DECIDE).status_code == 200
    publish_tiny(store, seed=4)  # restores the blob; the failure is not cached
    assert version_of(service, "humanoid@2") == 2


def test_corrupt_parent_disables_only_its_controller(store, serve):
    publish_tiny_controller(store, publish_tiny(store, name="other", seed=3), name="strike")
    damage(blob_of(store, "humanoid", "policy.onnx"))
    service = serve(store.root)
    problem(service.post("/controllers/reach/act", json=DECIDE), 503, "corrupt_blob", "name")
    assert service.post("/controllers/strike/act", json=DECIDE).status_code == 200


def test_a_damaged_record_is_listed_as_a_fault(store, serve):
    publish_tiny(store, seed=1)
    record = store.root / "skills" / "humanoid" / "v" / "00000002.json"
    record.chmod(0o644)
    record.write_text("{")
    service = serve(store.root)
    problem(service.post("/act", json=ACT), 503, "corrupt_record", "skill")
    [line] = service.get("/skills").json()["skills"]
    assert line["versions"] == [1]
    assert "humanoid@2" in line["faults"][0]
    assert version_of(service, "humanoid@1") == 1


def test_listing_reads_the_index_and_no_manifest(store, serve):
    """Only opening a version reads its manifest, and finds the damage."""
    manifest = (
        store.root / "blobs/sha256" / store.resolve("humanoid").digest.removeprefix("sha256:")
    )
    before = manifest.stat()
    manifest.chmod(0o644)
    manifest.write_bytes(b"?" * before.st_size)
    os.utime(manifest, ns=(before.st_atime_ns, before.st_mtime_ns))
    service = serve(store.root)
    assert [line["versions"] for line in service.get("/skills").json()["skills"]] == [[1]]
    problem(service.get("/skills/humanoid"), 503, "corrupt_blob", "ref")


def test_deleted_version_returns_404_with_the_reason(store, serve):
    publish_tiny(store, seed=1)
    store.delete("humanoid@2", "it limps")
    found = problem(serve(store.root).get("/skills/humanoid@2"), 404, "deleted_version", "ref")
    assert "it limps" in found["message"]
    assert found["expected"] == "one of: 1"


@pytest.mark.parametrize("exists", [False, True])
def test_service_without_skills_is_healthy_but_not_ready(tmp_path, serve, exists):
    root = tmp_path / "empty"
    if exists:
        root.mkdir()
    service = serve(root)
    assert service.get("/healthz").json() == {"status": "ok"}
    assert "there are no skills" in problem(service.get("/readyz"), 503, "unknown_skill")["message"]
    problem(service.post("/act", json=ACT), 404, "unknown_skill", "skill")
    assert service.get("/skills").json() == {"default": "humanoid@latest", "skills": []}
    publish_tiny(Store(root))
    assert service.get("/readyz").json()["skill"]["version"] == 1


def test_readyz_returns_the_default_skill(service, shared):
    assert service.get("/readyz").json()["skill"]["digest"] == shared.resolve("humanoid").digest


def test_listings_and_details_match_the_store(service, shared):
    listing = {"name": "humanoid", "versions": [1], "aliases": {}, "faults": []}
    assert service.get("/skills").json() == {"default": "humanoid@latest", "skills": [listing]}
    assert service.get("/controllers").json() == {"controllers": [listing | {"name": "reach"}]}
    found = service.get("/skills/humanoid@1").json()
    manifest = shared.resolve("humanoid").manifest
    assert found["joints"] == list(manifest.character.joints)
    assert [part["name"] for part in found["state"]][:2] == ["root_pos", "root_rot"]
    assert (found["state_dim"], found["latent_dim"], found["window"]) == (69, 8, 5)
    assert list(found["clips"]) == ["walk"]
    found = service.get("/controllers/reach").json()
    assert (found["goal_dim"], found["llc_steps"], found["skill"]["name"]) == (3, 6, "humanoid")


def test_more_versions_than_fit_in_memory_are_all_served(store, serve):
    for seed in (1, 2, 3):
        publish_tiny(store, seed=seed)
    size = sum(blob.size for blob in store.resolve("humanoid").manifest.files.values())
    service = serve(store.root, max_memory=2 * size)
    numbers = [1, 2, 3, 4, 1, 3, 3, 2]
    assert [version_of(service, f"humanoid@{n}") for n in numbers] == numbers
    assert len(service.service.skills.list_open()) == 2


def test_a_version_that_cannot_be_served_never_replaces_a_good_one(store, serve):
    service = serve(store.root)
    publish_tiny(store, seed=1)
    damage(blob_of(store, "humanoid@2", "policy.onnx"))
    service.refresh()
    assert version_of(service, "humanoid") == 1
    ready = service.get("/readyz").json()
    assert (ready["status"], ready["skill"]["version"]) == ("stale", 1)
    assert "policy.onnx of humanoid@2" in ready["stale"]["humanoid@latest"]
    publish_tiny(store, seed=1)  # restores the bytes
    service.refresh()
    assert version_of(service, "humanoid") == 3
    assert service.get("/readyz").json()["status"] == "ready"


def test_version_with_nan_output_never_replaces_a_good_one(store, serve, monkeypatch):
    service = serve(store.root)
    publishing = publish_tiny(store, seed=1)
    run = Net.run
    monkeypatch.setattr(
        Net,
        "run",
        lambda net, **rows: run(net, **rows) * (np.nan if publishing.ref in net.label else 1),
    )
    service.refresh()
    assert version_of(service, "humanoid") == 1
    assert "not finite" in service.get("/readyz").json()["stale"]["humanoid@latest"]


def test_a_version_that_cannot_be_run_never_replaces_a_good_one(store, serve, monkeypatch):
    """ONNX Runtime's exceptions share no base class; none may end the refresh of the store."""
    service = serve(store.root)
    publishing = publish_tiny(store, seed=1)
    run = InferenceSession.run

    def fail(session, outputs, feed):
        if len(service.service.skills.list_open()) == 1 and len(next(iter(feed.values()))) > 1:
            raise RuntimeError("Reshape: the shapes differ")
        return run(session, outputs, feed)

    with monkeypatch.context() as patch:
        patch.setattr(InferenceSession, "run", fail)
        service.refresh()
        assert version_of(service, "humanoid") == 1
        assert "cannot be run" in service.get("/readyz").json()["stale"]["humanoid@latest"]
        refused = service.get(f"/skills/humanoid@{publishing.number}")
        assert refused.json()["code"] == "unusable_graph"
    service.refresh()
    assert version_of(service, "humanoid") == 2


def test_missing_store_serves_loaded_skills_and_reports_stale(store, serve):
    service = serve(store.root)
    assert service.post("/controllers/reach/act", json=DECIDE).status_code == 200
    away = store.root.rename(store.root.parent / "away")
    service.refresh()
    assert version_of(service, "humanoid") == 1
    assert service.post("/controllers/reach/act", json=DECIDE).status_code == 200
    rows = {"state": STATE[None], "goal": goal_rows(1)}
    inputs = [
        {"name": name, "shape": row.shape, "datatype": "FP32", "data": row[0].tolist()}
        for name, row in rows.items()
    ]
    infer = {"inputs": inputs}
    assert service.post("/v2/models/reach/infer", json=infer).status_code == 200
    assert service.get("/readyz").json()["status"] == "stale"
    assert str(store.root) not in service.get("/readyz").text
    away.rename(store.root)
    service.refresh()
    assert service.get("/readyz").json()["status"] == "ready"


def test_removed_alias_returns_404_after_a_refresh(store, serve):
    store.alias("humanoid", "prod", 1)
    service = serve(store.root)
    assert version_of(service, "humanoid@prod") == 1
    shutil.rmtree(store.root / "skills" / "humanoid" / "moves" / "prod")
    service.refresh()
    problem(
        service.post("/act", json=ACT | {"skill": "humanoid@prod"}), 404, "unknown_alias", "skill"
    )


def test_default_skill_is_never_evicted(store, serve):
    publish_tiny(store, seed=1)
    publish_tiny(store, seed=2)
    service = serve(store.root, max_memory=1)
    assert [version_of(service, ref) for ref in ("humanoid@1", "humanoid@2", "humanoid")] == [
        1,
        2,
        3,
    ]
    assert {version.number for version in service.service.skills.list_open()} == {2, 3}


def test_a_controller_and_its_skill_share_one_session(service):
    service.post("/controllers/reach/act", json=DECIDE)
    served = service.service
    assert served.controllers.get_open("reach").skill is served.skills.get_open("humanoid@latest")


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The versions opened during a test, in order."""
    refs = []
    open_library = SkillLibrary.open.__func__

    def record(cls, store, version, **options):
        refs.append(version.ref)
        return open_library(cls, store, version, **options)

    monkeypatch.setattr(SkillLibrary, "open", classmethod(record))
    return refs


def test_requests_that_arrive_together_open_a_version_once(store, serve, opened):
    service = serve(
        store.root, skill="humanoid@prod"
    )  # does not exist, so nothing is opened at the start
    responses = service.together(
        [("/act", ACT | {"skill": "humanoid@1"})] * 20 + [("/act", ACT | {"skill": "nobody"})] * 5
    )
    assert [response.status_code for response in responses] == [200] * 20 + [404] * 5
    assert opened == ["humanoid@1"]


def test_references_to_one_version_that_arrive_together_open_it_once(store, serve, opened):
    digest = store.resolve("humanoid").digest
    service = serve(store.root, skill="humanoid@prod")
    refs = ["humanoid", "humanoid@latest", "humanoid@1", f"humanoid@{digest}"]
    responses = service.together([("/act", ACT | {"skill": ref}) for ref in refs] * 5)
    assert [response.status_code for response in responses] == [200] * 20
    assert opened == ["humanoid@1"]


def test_a_name_and_its_latest_are_resolved_once(store, serve, monkeypatch):
    service = serve(store.root, skill="humanoid@prod")
    resolved = []
    resolve = Store.resolve
    monkeypatch.setattr(
        Store, "resolve", lambda store, ref: resolved.append(ref) or resolve(store, ref)
    )
    service.together([("/act", ACT | {"skill": ref}) for ref in ("humanoid", "humanoid@latest")])
    assert resolved == ["humanoid@latest"]
