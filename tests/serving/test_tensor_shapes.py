"""Any shape that an infer request claims, on every model: 200 or a Problem that names the input."""

import json
from typing import Any

import numpy as np
import pytest

from tests.serving.local import goal_rows, skill_rows, state_rows
from tests.tiny import WINDOW

MODELS = {  # every graph of the store, and arrays that it accepts
    "humanoid": {"state": state_rows(2), "z": skill_rows(2)},
    "humanoid.policy": {"state": state_rows(2), "z": skill_rows(2)},
    "humanoid.encoder": {"window": state_rows(2 * WINDOW).reshape(2, WINDOW, -1)},
    "humanoid.style": {"window": state_rows(2 * WINDOW).reshape(2, WINDOW, -1)},
    "reach": {"state": state_rows(2), "goal": goal_rows(2)},
}
GIANTS = (2**28, 2**31, 2**62, 2**63, 2**64, 10**30, 10**4000)
SHAPES = [
    *([0, giant] for giant in GIANTS),
    *([giant, 0] for giant in GIANTS),
    *([0, giant, giant, giant] for giant in GIANTS),
    *([giant, giant] for giant in GIANTS),
    *([-giant, -giant] for giant in GIANTS),
    *([giant] for giant in GIANTS),
    *([2**16] * n for n in range(1, 9)),
    [],
    [0],
    [0] * 8,
    [1] * 9,
    [-1],
    [-1, 69],
    [-2, -69],
    [-2, 0],
    [True, 69],
    [True, True],
    [False],
    [2.0, 69],
    [2, 69.0],
    [1e400, 1],
    [0.5],
    ["2", 69],
    ["2x69"],
    [None],
    [2, None],
    [[2, 69]],
    [[]],
    [{}],
    [2, [69]],
]
NO_LISTS = [None, 2, True, "2", {}, {"0": 2}]


def problem(response):
    """Assert that a response of /v2 is a Problem, and return it."""
    assert response.status_code == 422, response.text
    found = response.json()
    assert list(found) == ["error", "code", "message", "field", "expected"]
    assert len(response.content) < 2000  # a giant number is not repeated
    return found


def described(arrays, **changes):
    """The JSON of an infer request, with `changes` to its first input."""
    found: list[dict[str, Any]] = []
    for name, array in arrays.items():
        found.append({"name": name, "shape": list(array.shape), "datatype": "FP32"})
    found[0] |= changes
    return found


def infer(service, model, inputs, tail=b""):
    head = json.dumps({"inputs": inputs}).encode()
    length = {"inference-header-content-length": str(len(head))} if tail else {}
    return service.post(f"/v2/models/{model}/infer", content=head + tail, headers=length)


def infer_json(service, model, arrays, **changes):
    inputs = described(arrays, **changes)
    for one, array in zip(inputs, arrays.values(), strict=True):
        one.setdefault("data", array.ravel().tolist())
    return infer(service, model, inputs)


def infer_binary(service, model, arrays, **changes):
    inputs = described(arrays, **changes)
    for one, array in zip(inputs, arrays.values(), strict=True):
        one.setdefault("parameters", {"binary_data_size": array.nbytes})
    return infer(service, model, inputs, b"".join(array.tobytes() for array in arrays.values()))


@pytest.mark.parametrize("send", [infer_json, infer_binary])
@pytest.mark.parametrize("model", MODELS)
def test_a_shape_that_no_input_has_is_refused(service, model, send):
    arrays = MODELS[model]
    assert send(service, model, arrays).status_code == 200
    first = next(iter(arrays))
    for shape in SHAPES:
        found = problem(send(service, model, arrays, shape=shape))
        assert found["field"] in (first, "inputs.0.shape")
    for shape in NO_LISTS:
        assert problem(send(service, model, arrays, shape=shape))["field"] == "inputs.0.shape"


@pytest.mark.parametrize("model", MODELS)
def test_empty_data_is_refused_for_any_shape(service, model):
    """Shapes with a 0 have as many numbers as empty data, and are refused nonetheless."""
    arrays = MODELS[model]
    first = next(iter(arrays))
    for shape in SHAPES:
        for data in ([], [[]], [[], []]):
            found = problem(infer_json(service, model, arrays, shape=shape, data=data))
            assert found["field"] in (first, "inputs.0.shape")
        nothing = {"shape": shape, "parameters": {"binary_data_size": 0}}
        assert problem(infer_binary(service, model, arrays, **nothing))["code"] != "not_finite"


@pytest.mark.parametrize("axes", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("model", MODELS)
def test_numbers_in_another_shape_than_the_models_are_refused(service, model, axes):
    arrays = MODELS[model]
    array = next(iter(arrays.values()))
    shape = [1] * (axes - 1) + [array.size]
    for send in (infer_json, infer_binary):
        assert problem(send(service, model, arrays, shape=shape))["code"] == "wrong_shape"


@pytest.mark.parametrize("size", [-1, 0, 1, 2.5, True, "552", 10**30, [552], {}, 551, 553])
@pytest.mark.parametrize("model", MODELS)
def test_binary_data_size_not_matching_the_shape_is_refused(service, model, size):
    sized = {"parameters": {"binary_data_size": size}}
    found = problem(infer_binary(service, model, MODELS[model], **sized))
    assert "binary_data_size" in found["message"]


NESTINGS = [  # data, shape
    ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [2, 3]),
    ([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], [2, 3]),
    ([[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]], [2, 3]),
    ([[1.0, 2.0, 3.0], [4.0, 5.0]], [5]),
    ([1.0, [2.0]], [2]),
    ([[1.0], 2.0], [2]),
    (1.0, [1]),
    ([[[]]], [1]),
    ("1.0", [1]),
    ({"0": 1.0}, [1]),
    (None, [1]),
    ([True], [1]),
    ([None], [1]),
]


@pytest.mark.parametrize(("data", "shape"), NESTINGS)
@pytest.mark.parametrize("model", MODELS)
def test_data_nested_unlike_its_shape_is_refused(service, model, data, shape):
    found = problem(infer_json(service, model, MODELS[model], data=data, shape=shape))
    assert (found["code"], found["field"]) == ("wrong_shape", next(iter(MODELS[model])))
    assert "its data" in found["message"]


@pytest.mark.parametrize("model", MODELS)
def test_flat_nested_and_binary_data_give_equal_replies(service, model):
    arrays = MODELS[model]
    flat = infer_json(service, model, arrays)
    inputs = described(arrays)
    for one, array in zip(inputs, arrays.values(), strict=True):
        one["data"] = array.tolist()
    assert infer(service, model, inputs).content == flat.content
    assert infer_binary(service, model, arrays).content == flat.content
    outputs = flat.json()["outputs"][0]
    assert len(outputs["data"]) == np.prod(outputs["shape"])


NO_MODELS = ["", "%2e", ".policy", "@1", "humanoid.", "humanoid..policy", "%00", "x" * 300]


@pytest.mark.parametrize("model", NO_MODELS)
def test_a_model_that_does_not_exist_is_refused(service, model):
    response = infer_json(service, model, MODELS["humanoid"])
    assert response.status_code in (404, 422), response.text
    assert response.json()["error"]
