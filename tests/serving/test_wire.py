"""All encodings give equal results; truncated data, other types and byte orders are refused."""

import json

import numpy as np
import orjson
import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.wire import json as wire_json
from skills_store.runtime.library import SkillLibrary
from tests.serving.local import goal_rows, problem, skill_rows, state_rows

RAW = "application/octet-stream"
MSGPACK = "application/msgpack"


def raw(service, tensors, body, path="/act", **headers):
    all_headers = {"content-type": RAW, "x-tensors": tensors} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    return service.post(path, content=body, headers=all_headers)


@pytest.mark.parametrize("count", [None, 1, 5, 40])
def test_raw_msgpack_and_json_give_equal_results(service, shared, count):
    state = state_rows(count or 1)
    z = skill_rows(count or 1)
    expected = SkillLibrary.open(shared, "humanoid").act(state, z)
    fields = {"state": state.tolist(), "z": z.tolist()}
    if count is None:
        fields = {name: rows[0] for name, rows in fields.items()}
        expected = expected[0]
    batch = f"{count}x" if count else ""
    responses = [
        service.post("/act", json=fields),
        service.post("/act", content=ormsgpack.packb(fields), headers={"content-type": MSGPACK}),
        raw(service, f"state={batch}69,z={batch}8", state.tobytes() + z.tobytes()),
    ]
    assert [response.status_code for response in responses] == [200] * 3
    decoded = [responses[0].json(), ormsgpack.unpackb(responses[1].content)]
    for found in decoded:
        np.testing.assert_array_equal(np.array(found["targets"], np.float32), expected)
    assert responses[2].headers["x-tensors"] == f"targets={batch}28"
    np.testing.assert_array_equal(
        np.frombuffer(responses[2].content, "<f4").reshape(expected.shape), expected
    )
    others = json.loads(responses[2].headers["x-fields"])
    assert others == {name: decoded[0][name] for name in ("z_normalised", "skill")}
    assert len({response.headers["x-skill-digest"] for response in responses}) == 1


def test_encode_and_controller_routes_accept_raw_tensors(service, shared):
    frames = state_rows(9)
    response = raw(service, "frames=9x69", frames.tobytes(), "/encode")
    assert response.headers["x-tensors"] == "z=5x8,pooled=8"
    own = SkillLibrary.open(shared, "humanoid").embed(frames)
    np.testing.assert_array_equal(
        np.frombuffer(response.content, "<f4"), np.concatenate([own.windows.ravel(), own.pooled])
    )
    state = state_rows(1)[0]
    goal = goal_rows(1)[0]
    response = raw(
        service, "state=69,goal=3", state.tobytes() + goal.tobytes(), "/controllers/reach/act"
    )
    assert response.headers["x-tensors"] == "z=8,targets=28"


def test_raw_request_takes_its_other_fields_from_a_header(service):
    state = state_rows(1)[0]
    z = 3 * skill_rows(1)[0]
    body = state.tobytes() + z.tobytes()
    response = raw(service, "state=69,z=8", body, x_fields='{"skill": "humanoid@1"}')
    assert json.loads(response.headers["x-fields"])["z_normalised"] is True
    problem(
        raw(service, "state=69,z=8", body, x_fields='{"strict": true}'),
        422,
        "not_on_the_sphere",
        "z",
    )
    problem(
        raw(service, "state=69,z=8", body, x_fields='{"skill": "nobody"}'),
        404,
        "unknown_skill",
        "skill",
    )
    problem(raw(service, "state=69,z=8", body, x_fields="{"), 422, "not_json", "x-fields")
    problem(raw(service, "state=69,z=8", body, x_fields="[1]"), 422, "wrong_type", "x-fields")
    problem(raw(service, "state=69,z=8", body, x_fields='{"y": 2}'), 422, "unknown_field", "y")


def test_field_given_as_tensor_and_as_header_field_is_refused(service):
    body = state_rows(1).tobytes() + skill_rows(1).tobytes()
    response = raw(service, "state=69,z=8", body, x_fields='{"z": [1, 0, 0, 0, 0, 0, 0, 0]}')
    problem(response, 422, "given_twice", "z")
    assert raw(service, "state=69,z=8", body, x_fields='{"z": null}').status_code == 200


BODY = state_rows(1).tobytes() + skill_rows(1).tobytes()


@pytest.mark.parametrize("cut", [*range(1, len(BODY), 7), 1])
def test_a_truncated_body_is_refused(service, cut):
    problem(raw(service, "state=69,z=8", BODY[:-cut]), 422, "wrong_shape")


BAD = [
    "",
    "state",
    "state=69",
    "state=69,z=8,z=8",
    "state=x,z=8",
    "state=69;z=8",
    "state=-1,z=8",
    "state=1x1x1x69,z=8",
    "state=999999999x999999999,z=8",
    "state=69,z=9",
    "state=68,z=9",
    "state=7 7",
    "state=0x69,z=0x8",
    "state=0,z=0",
    "state=0x0x0,z=8",
    "state=0x999999999x999999999,z=85",
]


@pytest.mark.parametrize("tensors", BAD)
def test_invalid_or_mismatched_tensor_shapes_are_refused(service, tensors):
    response = raw(service, tensors, BODY)
    assert response.status_code == 422
    assert response.json()["code"] in ("wrong_shape", "missing_field")


@pytest.mark.parametrize("dtype", ["float64", "float16", ">f4", "int32"])
def test_another_type_or_byte_order_is_refused_by_name(service, dtype):
    problem(raw(service, "state=69,z=8", BODY, x_dtype=dtype), 422, "wrong_type", "x-dtype")
    assert raw(service, "state=69,z=8", BODY, x_dtype="<f4").status_code == 200


def test_undeclared_float64_or_big_endian_bytes_are_refused(service):
    state = state_rows(1)[0]
    z = skill_rows(1)[0]
    problem(
        raw(service, "state=69,z=8", state.astype(">f4").tobytes() + z.tobytes()),
        422,
        *NOT_A_ROTATION,
    )
    doubles = state.astype(np.float64).tobytes() + z.astype(np.float64).tobytes()
    problem(raw(service, "state=69,z=8", doubles), 422, "wrong_shape")


NOT_A_ROTATION = ("not_a_rotation", "state.root_rot")


def test_a_raw_number_that_is_not_finite_is_named(service):
    state = state_rows(2)
    z = skill_rows(2)
    state[1, 8] = np.nan
    response = raw(service, "state=2x69,z=2x8", state.tobytes() + z.tobytes())
    problem(response, 422, "not_finite", "state[1][8]")


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x81", b"\xdf\xff\xff\xff\xff", b"\x92" * 5000, b"\xdd\xff\xff\xff\xff"],
)
def test_invalid_msgpack_bytes_are_refused(service, body):
    response = service.post("/act", content=body, headers={"content-type": MSGPACK})
    problem(response, 422, "not_msgpack")


@pytest.mark.parametrize(
    "body",
    [{1: 2}, [1], {"state": b"\0" * 276, "z": [1.0] * 8}, {"state": {"root_pos": b""}, "z": []}],
)
def test_invalid_msgpack_request_is_refused(service, body):
    data = ormsgpack.packb(body, option=ormsgpack.OPT_NON_STR_KEYS)
    response = service.post("/act", content=data, headers={"content-type": MSGPACK})
    assert response.status_code == 422
    assert set(response.json()) == {"code", "message", "field", "expected"}


def test_msgpack_is_read_under_its_older_name_and_other_types_are_named(service):
    data = ormsgpack.packb({"state": state_rows(1)[0].tolist(), "z": "walk"})
    for name in ("application/x-msgpack", "application/X-MsgPack; charset=x"):
        response = service.post("/act", content=data, headers={"content-type": name})
        assert response.status_code == 200
        assert response.headers["content-type"] == MSGPACK
    response = service.post("/act", content=data, headers={"content-type": "application/cbor"})
    found = problem(response, 422, "not_json", "content-type")
    assert "'application/cbor'" in found["message"]
    assert found["expected"] == f"one of: application/json, {MSGPACK}, {RAW}"


NUMBERS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False),
)
NUMBERS = NUMBERS.filter(lambda x: abs(x) < 1e300)
ROWS = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), min_size=1, max_size=4)
)
ANY = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.text(max_size=3), st.one_of(st.lists(NUMBERS, min_size=1), ROWS, ANY), max_size=4
    )
)
def test_json_arrays_decode_like_the_plain_reader_in_float32(fields):
    """Arrays are read straight into float32 and equal Python's numbers; the rest is unchanged."""
    if not _fits(fields):
        return
    body = orjson.dumps(json.loads(json.dumps(fields)), option=orjson.OPT_NON_STR_KEYS)
    found = wire_json.decode(body, {})
    plain = orjson.loads(body)
    assert found.keys() == plain.keys()
    for name, value in found.items():
        if isinstance(value, np.ndarray):
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(
                    value, np.array(plain[name], np.float64).astype(np.float32)
                )
        else:
            assert value == plain[name]
            assert type(value) is type(plain[name])


def _fits(fields):
    """orjson writes integers of 64 bits at most."""
    try:
        orjson.dumps(fields)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": [[[1], [2]]]}',
        b'{"a": [1, [2]]}',
        b'{"a": [[1, 2], [3]]}',
        b'{"a": [1, true]}',
        b'{"a": [1, null]}',
        b'{"a": [1, "2"]}',
        b'{"a": []}',
        b'{"a": {"b": [1]}}',
        b'{"a": [1], "a": [2]}',
        b'{"a": [1], "b": "["}',
        b"[1, 2]",
        b'"a"',
        b"1",
    ],
)
def test_json_values_other_than_number_arrays_decode_unchanged(body):
    assert wire_json.decode(body, {}) == json.loads(body)
