"""Options of an infer request: those of the protocol are implemented or refused by name."""

import json
from copy import deepcopy

import numpy as np
import pytest

from tests.serving.local import skill_rows, state_rows

STATE = state_rows(2)
Z = skill_rows(2)
BODY = {
    "parameters": {},
    "inputs": [
        {"name": "state", "shape": [2, 69], "datatype": "FP32", "data": STATE.ravel().tolist()},
        {"name": "z", "shape": [2, 8], "datatype": "FP32", "data": Z.ravel().tolist()},
    ],
    "outputs": [{"name": "targets"}],
}
PLACES = {  # where parameters are allowed
    "parameters": lambda body: body,
    "inputs.1.parameters": lambda body: body["inputs"][1],
    "outputs.0.parameters": lambda body: body["outputs"][0],
}
UNSUPPORTED = {
    "classification": 3,
    "sequence_id": 7,
    "sequence_start": True,
    "sequence_end": True,
    "shared_memory_region": "region",
    "shared_memory_byte_size": 64,
    "shared_memory_offset": 8,
    "triton_enable_empty_final_response": True,
    "triton_" + "x" * 500: [1],
}


def infer(service, body):
    return service.post("/v2/models/humanoid/infer", json=body)


def with_parameters(place, **parameters):
    body = deepcopy(BODY)
    PLACES[place](body)["parameters"] = parameters
    return body


def assert_refused(response, code, field):
    assert response.status_code == 422, response.text
    found = response.json()
    assert (found["code"], found["field"]) == (code, field)
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", UNSUPPORTED)
def test_an_option_that_is_not_implemented_is_refused_by_name(service, place, name):
    response = infer(service, with_parameters(place, **{name: UNSUPPORTED[name]}))
    short = name if len(name) < 80 else name[:79] + ".."
    assert short in assert_refused(response, "unsupported_option", f"{place}.{short}")["message"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("unused", [None, 0, False, ""])
def test_an_option_that_is_not_used_changes_nothing(service, place, unused):
    expected = infer(service, BODY)
    assert expected.status_code == 200
    found = infer(service, with_parameters(place, **dict.fromkeys(UNSUPPORTED, unused)))
    assert found.content == expected.content


@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_duplicate_tensor_names_are_refused(service, which):
    body = deepcopy(BODY)
    body[which].append(body[which][0])
    name = body[which][0]["name"]
    assert name in assert_refused(infer(service, body), "given_twice", which)["message"]


def test_duplicate_outputs_with_other_options_are_refused(service):
    outputs = [{"name": "targets", "parameters": {"binary_data": flag}} for flag in (True, False)]
    assert_refused(infer(service, BODY | {"outputs": outputs}), "given_twice", "outputs")


def test_an_input_with_data_in_json_and_in_binary_is_refused(service):
    both = BODY["inputs"][1] | {"parameters": {"binary_data_size": 64}}
    head = json.dumps(BODY | {"inputs": [BODY["inputs"][0], both]}).encode()
    response = service.post(
        "/v2/models/humanoid/infer",
        content=head + Z.tobytes(),
        headers={"inference-header-content-length": str(len(head))},
    )
    assert_refused(response, "given_twice", "z")


def test_binary_data_without_the_length_of_the_json_are_refused(service):
    one = {"name": "z", "shape": [2, 8], "datatype": "FP32"}
    one["parameters"] = {"binary_data_size": 64}
    response = infer(service, BODY | {"inputs": [BODY["inputs"][0], one]})
    assert_refused(response, "missing_field", "inference-header-content-length")


@pytest.mark.parametrize("by_default", [None, True, False])
@pytest.mark.parametrize("own", [None, True, False])
def test_output_binary_data_overrides_the_request_default(service, by_default, own):
    body = deepcopy(BODY)
    body["parameters"]["binary_data_output"] = by_default
    body["outputs"][0]["parameters"] = {"binary_data": own}
    response = infer(service, body)
    assert response.status_code == 200
    binary = by_default if own is None else own
    assert ("inference-header-content-length" in response.headers) == bool(binary)
    plain = np.array(infer(service, BODY).json()["outputs"][0]["data"], np.float32)
    if binary:
        length = int(response.headers["inference-header-content-length"])
        found = np.frombuffer(response.content[length:], "<f4")
    else:
        found = np.array(response.json()["outputs"][0]["data"], np.float32)
    np.testing.assert_array_equal(found, plain)


FLAGS = [
    ("parameters", "binary_data_output"),
    ("outputs.0.parameters", "binary_data"),
]


@pytest.mark.parametrize(("place", "name"), FLAGS)
@pytest.mark.parametrize("value", [0, 1, "true", "", [], {}, 1.5])
def test_a_flag_that_is_neither_true_nor_false_is_refused(service, place, name, value):
    response = infer(service, with_parameters(place, **{name: value}))
    assert_refused(response, "wrong_type", f"{place}.{name}")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [3, "abc", [1], True, {}])
def test_parameters_must_be_an_object(service, place, value):
    body = deepcopy(BODY)
    PLACES[place](body)["parameters"] = value
    response = infer(service, body)
    if value == {}:
        assert response.status_code == 200
    else:
        assert_refused(response, "wrong_type", place)


@pytest.mark.parametrize("place", PLACES)
def test_parameters_of_other_servers_are_ignored(service, place):
    others = {"content_type": "np", "headers": {"a": "b"}, "priority": 2, "timeout": 5, "mine": 1}
    found = infer(service, with_parameters(place, **others))
    assert found.content == infer(service, BODY).content


def test_reply_has_a_parameter_where_a_z_was_normalised(service):
    body = deepcopy(BODY)
    assert "parameters" not in infer(service, body).json()
    body["inputs"][1]["data"] = (2 * Z).ravel().tolist()
    assert infer(service, body).json()["parameters"] == {"z_normalised": True}
