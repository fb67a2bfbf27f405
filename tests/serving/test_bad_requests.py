"""Every bad input is a 422 Problem that names the field, and never a 5xx."""

import json
import random

import pytest

from tests.serving.local import goal_rows, problem, skill_rows, state_rows
from tests.tiny import SLICES

STATE = state_rows(1)[0].tolist()
Z = skill_rows(1)[0].tolist()
GOAL = goal_rows(1)[0].tolist()
PARTS = {part.name: STATE[part.start : part.stop] for part in SLICES}


def replaced(row: list, index: int, value: object) -> list:
    return [*row[:index], value, *row[index + 1 :]]


BODIES = [  # name, body, code, field
    ("state short", {"state": STATE[:-1], "z": Z}, "wrong_shape", "state"),
    ("state long", {"state": [*STATE, 0.0], "z": Z}, "wrong_shape", "state"),
    ("z short", {"state": STATE, "z": Z[:3]}, "wrong_shape", "z"),
    ("state empty", {"state": [], "z": Z}, "wrong_shape", "state"),
    ("state an empty row", {"state": [[]], "z": [Z]}, "wrong_shape", "state[0]"),
    ("ragged", {"state": [STATE, STATE[:-1]], "z": [Z, Z]}, "wrong_shape", "state[1]"),
    ("row among rows", {"state": [STATE, 1.0], "z": [Z, Z]}, "wrong_type", "state[1]"),
    ("list among numbers", {"state": replaced(STATE, 5, [1.0]), "z": Z}, "wrong_type", "state[5]"),
    ("too deep", {"state": [[STATE]], "z": [Z]}, "wrong_type", "state[0][0]"),
    ("a string", {"state": replaced(STATE, 7, "1.5"), "z": Z}, "wrong_type", "state[7]"),
    ("null among numbers", {"state": STATE, "z": replaced(Z, 2, None)}, "wrong_type", "z[2]"),
    ("true among numbers", {"state": STATE, "z": replaced(Z, 2, True)}, "wrong_type", "z[2]"),
    ("an object among numbers", {"state": STATE, "z": replaced(Z, 2, {})}, "wrong_type", "z[2]"),
    ("state a string", {"state": "0,0,1", "z": Z}, "wrong_type", "state"),
    ("state a number", {"state": 1.0, "z": Z}, "wrong_type", "state"),
    ("state null", {"state": None, "z": Z}, "wrong_type", "state"),
    ("z an object", {"state": STATE, "z": {"z": Z}}, "wrong_type", "z"),
    ("z missing", {"state": STATE}, "missing_field", "z"),
    ("state missing", {"z": Z}, "missing_field", "state"),
    ("extra key", {"state": STATE, "z": Z, "temperature": 1}, "unknown_field", "temperature"),
    ("skill a number", {"state": STATE, "z": Z, "skill": 3}, "wrong_type", "skill"),
    (
        "skill not a reference",
        {"state": STATE, "z": Z, "skill": "../etc"},
        "invalid_reference",
        "skill",
    ),
    ("skill too long", {"state": STATE, "z": Z, "skill": "x" * 5000}, "invalid_reference", "skill"),
    ("skill a controller", {"state": STATE, "z": Z, "skill": "reach"}, "wrong_kind", "skill"),
    ("a batch of one z for one state", {"state": STATE, "z": [Z]}, "batch_mismatch", "z"),
    ("three z for two states", {"state": [STATE] * 2, "z": [Z] * 3}, "batch_mismatch", "z"),
    ("huge batch", {"state": [STATE] * 41, "z": [Z] * 41}, "batch_too_large", "state"),
    ("no rotation", {"state": replaced(STATE, 3, 2.0), "z": Z}, "not_a_rotation", "state.root_rot"),
    (
        "zero rotation",
        {"state": [*STATE[:3], 0, 0, 0, 0, *STATE[7:]], "z": Z},
        "not_a_rotation",
        "state.root_rot",
    ),
    (
        "part missing",
        {"state": {**PARTS} | {"root_pos": None}, "z": Z},
        "wrong_type",
        "state.root_pos",
    ),
    (
        "part absent",
        {"state": dict(list(PARTS.items())[1:]), "z": Z},
        "missing_field",
        "state.root_pos",
    ),
    ("part unknown", {"state": PARTS | {"root_quat": [1]}, "z": Z}, "unknown_field", "state"),
    (
        "part short",
        {"state": PARTS | {"joint_vel": [0.0]}, "z": Z},
        "wrong_shape",
        "state.joint_vel",
    ),
    (
        "parts differ",
        {"state": PARTS | {"joint_vel": [PARTS["joint_vel"]]}, "z": Z},
        "batch_mismatch",
        "state.joint_vel",
    ),
    ("beyond float32", {"state": replaced(STATE, 8, 1e39), "z": Z}, "not_finite", "state[8]"),
    ("overflows inside", {"state": replaced(STATE, 8, 3e38), "z": Z}, None, None),
]


@pytest.mark.parametrize(
    ("body", "code", "field"), [b[1:] for b in BODIES], ids=[b[0] for b in BODIES]
)
def test_invalid_act_body_is_refused(service, body, code, field):
    response = service.post("/act", json=body)
    if code is None:  # finite, so the graph runs; an infinite result is refused
        assert response.status_code == 200 or problem(response, 422, "not_finite")
        return
    assert problem(response, 422, code, field)["expected"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400])
@pytest.mark.parametrize("batch", [False, True])
def test_a_number_that_is_not_finite_is_named_with_its_index(service, number, batch):
    state = json.dumps(STATE)
    z = json.dumps(replaced(Z, 2, "?")).replace('"?"', number)
    body = (
        f'{{"state": [{state}, {state}], "z": [{json.dumps(Z)}, {z}]}}'
        if batch
        else f'{{"state": {state}, "z": {z}}}'
    )
    where = "z[1][2]" if batch else "z[2]"
    assert (
        "[8]" in problem(service.post("/act", content=body), 422, "not_finite", where)["expected"]
    )


def test_wrong_shape_error_states_the_expected_shape(service):
    found = problem(
        service.post("/act", json={"state": STATE, "z": Z[:3]}), 422, "wrong_shape", "z"
    )
    assert found == {
        "code": "wrong_shape",
        "message": "z has 3 numbers; it needs 8",
        "field": "z",
        "expected": "[8] or [B, 8], B up to 40, or a clip's name",
    }


PARTS_TEXT = ", ".join(f"{part.name}[{part.stop - part.start}]" for part in SLICES)


@pytest.mark.parametrize(
    ("path", "body", "field", "expected"),
    [
        ("/act", {"state": [1.0], "z": Z}, "state", "[69] or [B, 69], B up to 40, or an object"),
        ("/interpolate", {"path": ["walk", 1], "steps": 3}, "path[1]", "[8], or a clip's name"),
        ("/interpolate", {"path": [[Z], Z], "steps": 3}, "path[0]", "[8], or a clip's name"),
        ("/encode", {"frames": STATE}, "frames", "[B, 69], B up to 60, or an object"),
    ],
)
def test_expected_has_the_forms_that_are_accepted(service, path, body, field, expected):
    found = service.post(path, json=body).json()
    assert found["field"] == field
    by_part = f"{expected} of {PARTS_TEXT}"
    assert found["expected"] == (by_part if expected.endswith("object") else expected)


@pytest.mark.parametrize(
    ("path", "fields", "value", "expected"),
    [
        ("/act", {"seed": -1}, "-1", f"a whole number, 0 to {2**63 - 1}"),
        ("/act", {"seed": "x" * 500}, "'xxx", f"a whole number, 0 to {2**63 - 1}"),
        (
            "/act",
            {"seed": 10**400},
            "a whole number of more than 30 digits",
            f"a whole number, 0 to {2**63 - 1}",
        ),
        ("/act", {"seed": [[1] * 9] * 9}, "a list", f"a whole number, 0 to {2**63 - 1}"),
        ("/act", {"strict": 1}, "1", "true or false"),
        ("/interpolate", {"path": ["walk", Z], "steps": 1}, "1", "a whole number, 2 to 10000"),
        ("/interpolate", {"path": ["walk", Z]}, "missing", "a whole number, 2 to 10000"),
    ],
)
def test_a_wrong_scalar_is_named_with_its_bounds(service, path, fields, value, expected):
    body = {"state": STATE, "z": Z} | fields if path == "/act" else fields
    found = service.post(path, content=json.dumps(body)).json()
    assert found["message"].startswith(f"{found['field']} is {value}")
    assert len(found["message"]) < 200
    assert found["expected"] == expected


BYTES = [
    b"",
    b"{",
    b"state=1",
    b"\xff\xfe",
    b'{"state": [1,]}',
    b'{"\\ud800": 1}',
    b"[" * 1025 + b"]" * 1025,
]


@pytest.mark.parametrize("path", ["/act", "/encode", "/controllers/reach/act"])
def test_invalid_json_body_is_refused(service, path):
    for body in BYTES:
        assert problem(service.post(path, content=body), 422, "not_json")["expected"]
    for body in (b"null", b"[]", b"3", b'"text"'):
        assert problem(service.post(path, content=body), 422, "wrong_type")["expected"]


def test_invalid_goal_is_refused(service):
    path = "/controllers/reach/act"
    problem(
        service.post(path, json={"state": STATE, "goal": GOAL[:-1]}), 422, "wrong_shape", "goal"
    )
    problem(
        service.post(path, json={"state": STATE, "goal": [GOAL]}), 422, "batch_mismatch", "goal"
    )
    problem(
        service.post(path, json={"state": STATE, "goal": GOAL, "skill": "humanoid"}),
        422,
        "unknown_field",
        "skill",
    )
    problem(
        service.post("/controllers/humanoid/act", json={"state": STATE, "goal": GOAL}),
        422,
        "wrong_kind",
        "name",
    )


def test_body_over_the_cap_is_refused(service):
    assert (
        "200000"
        in problem(service.post("/act", content=b" " * 200_001), 413, "body_too_large")["expected"]
    )

    async def in_chunks():  # with no length announced, it is counted as it arrives
        for _ in range(300):
            yield b" " * 1000

    problem(service.post("/act", content=in_chunks()), 413, "body_too_large")


def test_unknown_route_and_method_return_problem_bodies(service):
    problem(service.get("/no/such/thing"), 404, "not_found")
    response = service.get("/act")
    problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"
    problem(service.get("/%ff%00<script>"), 404, "not_found")


ATOMS = [
    None,
    True,
    -1,
    0,
    1.5,
    1e308,
    10**30,
    "",
    "x" * 300,
    "NaN",
    "humanoid",
    "humanoid@1",
    "\x00",
    [],
    {},
    [[]],
    Z,
    [Z],
]


def scrambled(rng: random.Random, depth: int = 0) -> object:
    """Random JSON, near enough to a request to get past the first check."""
    if depth > 3 or rng.random() < 0.3:
        return rng.choice(ATOMS)
    if rng.random() < 0.4:
        return [scrambled(rng, depth + 1) for _ in range(rng.choice([0, 1, 2, 8, 69]))]
    keys = ["skill", "state", "z", "goal", "frames", "other", *PARTS]
    return {key: scrambled(rng, depth + 1) for key in rng.sample(keys, rng.randrange(6))}


def mutated_request(rng: random.Random) -> bytes:
    good = {
        "state": rng.choice([STATE, [STATE], PARTS]),
        "z": rng.choice([Z, [Z]]),
        "frames": [STATE] * 5,
        "goal": GOAL,
    }
    body = good | {rng.choice([*good, "skill"]): scrambled(rng)}
    for key in rng.sample(list(body), rng.randrange(3)):
        del body[key]
    data = bytearray(json.dumps(body if rng.random() < 0.7 else scrambled(rng)).encode())
    for _ in range(rng.choice([0, 0, 1, 5])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def test_300_random_bodies_cause_no_5xx(service):
    rng = random.Random(20261121)
    statuses = set()
    for _ in range(300):
        path = rng.choice(["/act", "/encode", "/controllers/reach/act"])
        response = service.post(path, content=mutated_request(rng))
        statuses.add(response.status_code)
        if response.status_code != 200:
            assert list(response.json()) == ["code", "message", "field", "expected"]
    assert statuses <= {200, 404, 413, 422}
