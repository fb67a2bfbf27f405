"""Null for an optional field means the same as no field, in every request and every encoding."""

import json

import ormsgpack
import pytest
from websockets.sync.client import connect

from serving.api import control_session
from serving.wire import schemas
from tests.serving.local import goal_rows, skill_rows, state_rows

STATES = state_rows(9)
STATE = state_rows(1)[0].tolist()
Z = skill_rows(1)[0].tolist()
REQUESTS = {  # path: a request without its optional fields, and their names
    "/act": ({"state": STATE, "z": Z}, ["skill", "strict", "seed"]),
    "/encode": ({"frames": STATES.tolist()}, ["skill"]),
    "/interpolate": ({"path": ["walk", Z], "steps": 3}, ["skill"]),
}
MODELS = {
    "/act": schemas.ActRequest,
    "/encode": schemas.EncodeRequest,
    "/interpolate": schemas.InterpolateRequest,
}


def optional(model):
    return [name for name, field in model.model_fields.items() if not field.is_required()]


@pytest.mark.parametrize("path", REQUESTS)
def test_null_optional_request_field_equals_absent(service, path):
    body, names = REQUESTS[path]
    assert sorted(names) == sorted(optional(MODELS[path]))
    expected = service.post(path, json=body)
    assert expected.status_code == 200
    for name in names:
        assert service.post(path, json=body | {name: None}).content == expected.content
    whole = body | dict.fromkeys(names)
    msgpack = {"content-type": "application/msgpack"}
    packed = service.post(path, content=ormsgpack.packb(whole), headers=msgpack)
    assert ormsgpack.unpackb(packed.content).keys() == expected.json().keys()


def test_null_field_in_raw_request_equals_absent(service):
    tensors = {"content-type": "application/octet-stream", "x-tensors": "state=69,z=8"}
    body = STATES[0].tobytes() + skill_rows(1).tobytes()
    nulls = json.dumps(dict.fromkeys(["skill", "strict", "seed"]))
    found = service.post("/act", content=body, headers=tensors | {"x-fields": nulls})
    assert found.status_code == 200
    assert found.content == service.post("/act", content=body, headers=tensors).content


@pytest.mark.parametrize(
    ("opening", "steps"),
    [
        ({"z": Z}, [{"state": STATE}, {"state": STATE, "z": "walk"}]),
        ({"controller": "reach"}, [{"state": STATE, "goal": goal_rows(1)[0].tolist()}]),
    ],
)
def test_null_field_in_a_session_message_equals_absent(live, opening, steps):
    def replies(nulls):
        with connect(f"{live.url.replace('http', 'ws')}/session") as socket:
            for fields, model in [
                (opening, control_session.Opening),
                *((s, control_session.Step) for s in steps),
            ]:
                absent = dict.fromkeys(optional(model)) if nulls else {}
                socket.send(json.dumps(absent | fields))
                yield json.loads(socket.recv(timeout=10))

    found = list(replies(nulls=True))
    assert found == list(replies(nulls=False))
    assert "targets" in found[-1]


INPUTS = [
    {"name": "state", "shape": [1, 69], "datatype": "FP32", "data": STATE},
    {"name": "z", "shape": [1, 8], "datatype": "FP32", "data": Z},
]
NULLS = [  # fields to add to an infer request that has no options
    {"id": None},
    {"parameters": None},
    {"outputs": None},
    {"parameters": {"binary_data_output": None, "content_type": None}},
    {"parameters": {"sequence_id": None, "headers": None}},
    {"inputs": [one | {"parameters": None} for one in INPUTS]},
    {"inputs": [one | {"parameters": {"binary_data_size": None}} for one in INPUTS]},
    {"outputs": [{"name": "targets", "parameters": None}]},
    {"outputs": [{"name": "targets", "parameters": {"binary_data": None}}]},
    {"outputs": [{"name": "targets", "parameters": {"classification": None}}]},
    {"id": None, "parameters": None, "outputs": None},
]


@pytest.mark.parametrize("nulls", NULLS)
def test_null_field_in_an_infer_request_equals_absent(service, nulls):
    expected = service.post("/v2/models/humanoid/infer", json={"inputs": INPUTS})
    assert expected.status_code == 200
    found = service.post("/v2/models/humanoid/infer", json={"inputs": INPUTS} | nulls)
    assert found.content == expected.content


def test_data_may_be_null_where_the_numbers_are_in_the_binary_part(service):
    sizes = [{"binary_data_size": 276}, {"binary_data_size": 32}]
    moved = zip(INPUTS, sizes, strict=True)
    binary = [one | {"data": None, "parameters": size} for one, size in moved]
    head = json.dumps({"inputs": binary, "outputs": None}).encode()
    body = head + STATES[:1].tobytes() + skill_rows(1).tobytes()
    length = {"inference-header-content-length": str(len(head))}
    found = service.post("/v2/models/humanoid/infer", content=body, headers=length)
    expected = service.post("/v2/models/humanoid/infer", json={"inputs": INPUTS})
    assert (found.status_code, found.content) == (200, expected.content)
