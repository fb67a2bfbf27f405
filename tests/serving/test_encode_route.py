"""POST /encode: one z per window and one for the whole, of JSON frames or of an uploaded motion
file."""

import json

import numpy as np
import pytest

from benchmarks.fuzz_clips import MAKERS
from pretrain.characters.character import load_character
from pretrain.motion.importers import read_clip
from skills_store.runtime.library import SkillLibrary
from tests.serving.local import floats, problem, state_rows
from tests.tiny import SLICES, WINDOW, skills_files, skills_manifest

FRAMES = state_rows(12)


def test_frames_are_encoded_window_by_window(service, shared):
    library = SkillLibrary.open(shared, "humanoid")
    response = service.post("/encode", json={"frames": FRAMES.tolist()})
    assert response.status_code == 200
    found = response.json()
    own = library.embed(FRAMES)
    assert len(found["z"]) == len(FRAMES) - WINDOW + 1
    np.testing.assert_array_equal(floats(found["z"]), own.windows)
    np.testing.assert_array_equal(floats(found["pooled"]), own.pooled)
    np.testing.assert_allclose(np.linalg.norm(found["pooled"]), 1, atol=1e-6)
    assert found["window"] == WINDOW
    [near] = found["nearest"]
    assert near["clip"] == "walk"
    assert near["cosine"] == pytest.approx(float(own.pooled[0]), abs=1e-6)


def test_named_parts_equal_flat_rows(service):
    parts = {part.name: FRAMES[:, part.start : part.stop].tolist() for part in SLICES}
    by_parts = service.post("/encode", json={"frames": parts, "skill": "humanoid@1"})
    assert by_parts.content == service.post("/encode", json={"frames": FRAMES.tolist()}).content


def test_one_window_is_enough_and_one_frame_less_is_not(service):
    assert len(service.post("/encode", json={"frames": FRAMES[:WINDOW].tolist()}).json()["z"]) == 1
    short = service.post("/encode", json={"frames": FRAMES[: WINDOW - 1].tolist()})
    assert problem(short, 422, "clip_too_short", "frames")["expected"] == "at least 5 frames"


def test_invalid_frames_are_refused(service):
    rows = FRAMES.tolist()
    problem(service.post("/encode", json={"frames": rows[0]}), 422, "wrong_shape", "frames")
    problem(service.post("/encode", json={"frames": []}), 422, "wrong_shape", "frames")
    problem(
        service.post("/encode", json={"frames": [*rows, rows[0][:-1]]}),
        422,
        "wrong_shape",
        "frames[12]",
    )
    problem(
        service.post("/encode", json={"frames": [*rows, [*rows[0][:-1], None]]}),
        422,
        "wrong_type",
        "frames[12][68]",
    )
    problem(
        service.post("/encode", json={"frames": [rows[0]] * 61}), 422, "batch_too_large", "frames"
    )
    problem(service.post("/encode", json={}), 422, "missing_field", "frames")


def standing_clip(frames: int = 20, duration: float = 1 / 30) -> dict:
    """A DeepMimic file: upright, arms hanging, walking off along x."""
    turn = [1.0, 0.0, 0.0, 0.0]
    pose = [*turn, *turn, *turn, 0.0, *turn, *turn, 0.0, *turn, 0.0, *turn, *turn, 0.0]
    return {
        "Loop": "none",
        "Frames": [[duration, 0.03 * i, 0.9, 0.0, *turn, *pose] for i in range(frames)],
    }


@pytest.fixture(scope="module")
def skeleton():
    return load_character("humanoid").skeleton


@pytest.fixture
def uploading(store, serve, skeleton):
    """A service whose skill has the real humanoid's skeleton."""
    manifest = skills_manifest()
    body = manifest.character.model_copy(update={"skeleton": skeleton.to_dict()})
    store.publish(manifest.model_copy(update={"character": body}), skills_files())
    return serve(store.root, max_frames=100)


def upload(service, data: bytes, name: str = "stand.txt", **fields):
    return service.post("/encode", files={"file": (name, data)}, data=fields)


def test_uploaded_clip_encodes_like_its_frames(uploading, skeleton):
    data = json.dumps(standing_clip()).encode()
    states = read_clip(data, "stand.txt", skeleton).states.flatten().astype(np.float32)
    response = upload(uploading, data, skill="humanoid@latest")
    assert response.status_code == 200, response.text
    assert len(response.json()["z"]) == len(states) - WINDOW + 1
    assert response.content == uploading.post("/encode", json={"frames": states.tolist()}).content


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "table"])
def test_a_clip_of_every_format_is_encoded_as_it_is_imported(uploading, skeleton, kind):
    clip = read_clip(json.dumps(standing_clip()).encode(), "stand.txt", skeleton)
    data = MAKERS[kind](clip)
    imported = read_clip(data, "clip", skeleton)
    if abs(imported.fps / 30 - 1) > 1e-6:
        imported = imported.resampled(30.0)
    states = imported.states.flatten().astype(np.float32)
    response = upload(uploading, data, "clip", skill="humanoid@latest")
    assert response.status_code == 200, response.text
    again = uploading.post("/encode", json={"frames": states.tolist()})
    assert response.content == again.content


def test_robot_table_upload_error_names_the_file(uploading):
    found = problem(
        upload(uploading, ",".join(["0.25"] * 36).encode(), "g1.csv"),
        422,
        "clip_unreadable",
        "file",
    )
    assert "g1.csv" in found["message"]


def test_invalid_uploads_are_refused(uploading):
    good = json.dumps(standing_clip()).encode()
    assert (
        "bad.txt"
        in problem(upload(uploading, b"no clip", "../../bad.txt"), 422, "clip_unreadable", "file")[
            "message"
        ]
    )
    problem(upload(uploading, b"", "empty.txt"), 422, "clip_unreadable", "file")
    problem(upload(uploading, b"MZ" + good, "walk.txt"), 422, "clip_unreadable", "file")
    problem(upload(uploading, json.dumps(standing_clip(3)).encode()), 422, "clip_too_short", "file")
    problem(
        upload(uploading, json.dumps(standing_clip(20, 1.0)).encode()),
        422,
        "batch_too_large",
        "file",
    )
    problem(upload(uploading, good, skill="nobody"), 404, "unknown_skill", "skill")
    problem(upload(uploading, good, speed="2"), 422, "unknown_field", "speed")
    problem(
        uploading.post("/encode", files={"clip": ("a.txt", good)}), 422, "unknown_field", "clip"
    )
    problem(
        uploading.post("/encode", files={"skill": ("a.txt", good)}), 422, "missing_field", "file"
    )
    two = [("file", ("a.txt", good)), ("file", ("b.txt", good))]
    problem(uploading.post("/encode", files=two), 422, "bad_upload")


def test_reader_exception_returns_422_and_is_logged(uploading, monkeypatch, caplog):
    def broken(*_):
        raise KeyError("secret detail")

    monkeypatch.setattr("serving.api.uploads.read_clip", broken)
    response = upload(uploading, b"x", "odd.bvh")
    problem(response, 422, "clip_unreadable", "file")
    assert "secret" not in response.text
    assert caplog.records[-1].exc_info[0] is KeyError


def test_upload_for_a_skill_without_skeleton_is_refused(service):
    problem(upload(service, b"x"), 503, "store_error")


FORMS = [
    b"",
    b"--b",
    b"--b\r\n\r\nx\r\n--b--\r\n",
    b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
    b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n',
    b'--b\r\nContent-Disposition: form-data; name="file"; '
    b'filename="\xff\x00.txt"\r\n\r\nx\r\n--b--\r\n',
    b"--b\r\n" + b"A" * 20_000 + b": x\r\n\r\nx\r\n--b--\r\n",
    b"\x00\xff" * 50,
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kind",
    ["multipart/form-data; boundary=b", "multipart/form-data", "multipart/form-data; boundary="],
)
def test_malformed_forms_are_refused(uploading, form, kind):
    response = uploading.post("/encode", content=form, headers={"content-type": kind})
    assert response.status_code == 422, response.text
    assert response.json()["code"] in {"bad_upload", "missing_field", "clip_unreadable"}
