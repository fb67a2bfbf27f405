"""/v2 through tritonclient, and by hand for requests that it does not send."""

import json

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from skills_store.runtime.library import Controller, SkillLibrary
from tests.serving.local import goal_rows, skill_rows, state_rows
from tests.serving.process import running
from tests.tiny import WINDOW


@pytest.fixture(scope="module")
def client(shared):
    with running(shared.root) as live:
        found = triton.InferenceServerClient(live.url.removeprefix("http://"))
        yield found
        found.close()


def make_inputs(binary=True, **arrays):
    found = []
    for name, array in arrays.items():
        found.append(triton.InferInput(name, list(array.shape), "FP32"))
        found[-1].set_data_from_numpy(np.ascontiguousarray(array), binary_data=binary)
    return found


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False, None])
def test_policy_matches_the_library(client, shared, binary_in, binary_out):
    state = state_rows(7)
    z = skill_rows(7)
    outputs = (
        None
        if binary_out is None
        else [triton.InferRequestedOutput("targets", binary_data=binary_out)]
    )
    found = client.infer(
        "humanoid", make_inputs(binary_in, state=state, z=z), outputs=outputs, request_id="seven"
    )
    expected = SkillLibrary.open(shared, "humanoid").act(state, z)
    np.testing.assert_array_equal(found.as_numpy("targets"), expected)
    assert found.get_response()["id"] == "seven"
    assert found.get_response()["model_version"] == "1"


def test_every_graph_is_a_model(client, shared):
    library = SkillLibrary.open(shared, "humanoid")
    controller = Controller.open(shared, "reach")
    windows = state_rows(4 * WINDOW).reshape(4, WINDOW, -1)
    found = client.infer("humanoid.encoder", make_inputs(window=windows)).as_numpy("z")
    np.testing.assert_array_equal(found, library.encode(windows))
    found = client.infer("humanoid.style", make_inputs(window=windows), model_version="1").as_numpy(
        "style"
    )
    np.testing.assert_array_equal(found, library.style(windows))
    state = state_rows(2)
    goal = goal_rows(2)
    found = client.infer("reach", make_inputs(state=state, goal=goal)).as_numpy("z")
    np.testing.assert_array_equal(found, controller.decide(state, goal))


def test_health_metadata_and_index_match_the_store(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("humanoid")
    assert client.is_model_ready("humanoid", "1")
    assert not client.is_model_ready("nobody")
    assert client.get_server_metadata()["name"] == "repertoire"
    found = client.get_model_metadata("humanoid.policy")
    assert found["inputs"] == [
        {"name": "state", "datatype": "FP32", "shape": [-1, 69]},
        {"name": "z", "datatype": "FP32", "shape": [-1, 8]},
    ]
    assert found["outputs"] == [{"name": "targets", "datatype": "FP32", "shape": [-1, 28]}]
    assert client.get_model_config("humanoid")["input"][0] == {
        "name": "state",
        "data_type": "TYPE_FP32",
        "dims": [69],
    }
    index = {(model["name"], model["version"]) for model in client.get_model_repository_index()}
    assert index == {("humanoid", "1"), ("reach", "1")}


def test_invalid_requests_raise_triton_client_errors_with_code(client):
    state = state_rows(2)
    z = skill_rows(2)
    cases = [
        ("nobody", make_inputs(state=state, z=z), "unknown_skill"),
        ("humanoid.flight", make_inputs(state=state, z=z), "unknown_model"),
        ("humanoid", make_inputs(state=state), "missing_field"),
        ("humanoid", make_inputs(state=state, z=z[:1]), "batch_mismatch"),
        ("humanoid", make_inputs(state=state, z=z[:, :3]), "wrong_shape"),
        ("humanoid", make_inputs(state=state[0], z=z[0]), "wrong_shape"),
        ("humanoid", make_inputs(state=np.full_like(state, np.nan), z=z), "not_finite"),
        ("humanoid.encoder", make_inputs(window=state), "wrong_shape"),
    ]
    for model, inputs, code in cases:
        with pytest.raises(InferenceServerException, match=code):
            client.infer(model, inputs)
    with pytest.raises(InferenceServerException, match="unknown_field"):
        client.infer(
            "humanoid",
            make_inputs(state=state, z=z),
            outputs=[triton.InferRequestedOutput("speed")],
        )


def test_unsupported_triton_options_are_refused_by_name(client):
    rows = make_inputs(state=state_rows(2), z=skill_rows(2))
    shared = triton.InferRequestedOutput("targets")
    shared.set_shared_memory("region", 224)
    cases = [
        ("classification", {"outputs": [triton.InferRequestedOutput("targets", class_count=3)]}),
        ("shared_memory_region", {"outputs": [shared]}),
        ("sequence_id", {"sequence_id": 7, "sequence_start": True}),
        ("sequence_id", {"sequence_id": "seven", "sequence_end": True}),
    ]
    for name, options in cases:
        with pytest.raises(InferenceServerException, match=f"unsupported_option.*{name}"):
            client.infer("humanoid", rows, **options)
    rows[1].set_shared_memory("region", 64)
    with pytest.raises(InferenceServerException, match=r"unsupported_option.*shared_memory_region"):
        client.infer("humanoid", rows)


def test_options_without_effect_are_accepted(client):
    rows = make_inputs(state=state_rows(2), z=skill_rows(2))
    expected = client.infer("humanoid", rows).as_numpy("targets")
    options = {
        "priority": 1,
        "timeout": 1_000_000,
        "parameters": {"content_type": "np", "trace": 3},
    }
    found = client.infer("humanoid", rows, **options).as_numpy("targets")
    np.testing.assert_array_equal(found, expected)


STATE = state_rows(1)
Z = skill_rows(1)
HEAD = json.dumps(
    {
        "inputs": [
            {
                "name": "state",
                "shape": [1, 69],
                "datatype": "FP32",
                "parameters": {"binary_data_size": 276},
            },
            {
                "name": "z",
                "shape": [1, 8],
                "datatype": "FP32",
                "parameters": {"binary_data_size": 32},
            },
        ]
    }
).encode()
BODY = HEAD + STATE.tobytes() + Z.tobytes()
MALFORMED = [  # body, length of its JSON
    (BODY[:-1], len(HEAD)),
    (BODY + b"x", len(HEAD)),
    (BODY, len(BODY) + 1),
    (BODY, -1),
    (BODY, "x"),
    (BODY, f"{len(HEAD):012}"),
    (BODY, 5),
    (BODY.replace(b"276", b"-76"), len(HEAD)),
    (BODY.replace(b"276", b"1.5"), len(HEAD)),
    (BODY.replace(b"[1, 69]", b"[1,-69]"), len(HEAD)),
    (BODY.replace(b"[1, 69]", b"[9,999]"), len(HEAD)),
    (BODY.replace(b"FP32", b"FP64"), len(HEAD)),
    (b'{"inputs": 3}', None),
    (b'{"inputs": [{"name": "state", "shape": [2], "datatype": "FP32", "data": [1, [2]]}]}', None),
    (
        b'{"inputs": [{"name": "state", "shape": [2], "datatype": "FP32", "data": ["a", null]}]}',
        None,
    ),
    (b'{"inputs": [{"name": "state", "shape": [3, 69], "datatype": "FP32", "data": []}]}', None),
    (b'{"inputs": [{"name": "state", "shape": [0], "datatype": "FP32", "data": []}]}', None),
    (b"[]", None),
    (b"", None),
]


@pytest.mark.parametrize(("body", "length"), MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_infer_request_returns_a_problem_with_error(service, body, length):
    headers = {} if length is None else {"inference-header-content-length": str(length)}
    response = service.post("/v2/models/humanoid/infer", content=body, headers=headers)
    assert response.status_code == 422, response.text
    found = response.json()
    assert list(found) == ["error", "code", "message", "field", "expected"]
    assert found["error"] == f"{found['code']}: {found['message']}"
