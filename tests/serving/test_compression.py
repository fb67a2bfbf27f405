"""Compressed bodies are unpacked within the limit of a body, or refused with what is supported."""

import gzip
import json
import zlib

import pytest

from serving.problems import Refusal
from serving.wire.compression import decompress
from tests.serving.local import problem, skill_rows, state_rows

BODY = json.dumps({"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}).encode()
RAW = zlib.compressobj(wbits=-15)
FORMS = {
    "gzip": [gzip.compress(BODY)],
    "deflate": [zlib.compress(BODY), RAW.compress(BODY) + RAW.flush()],
    "identity": [BODY],
}
CASES = [(name, data) for name, forms in FORMS.items() for data in forms]


@pytest.mark.parametrize(("encoding", "data"), CASES)
def test_what_is_unpacked_is_what_was_packed(encoding, data):
    assert decompress(data, encoding.upper().encode(), len(BODY)) == BODY


@pytest.mark.parametrize(("encoding", "data"), CASES[:3])
def test_one_byte_over_the_limit_is_too_large(encoding, data):
    with pytest.raises(Refusal) as refused:
        decompress(data, encoding.encode(), len(BODY) - 1)
    assert refused.value.status == 413


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: data + b"!", lambda data: b"!" + data])
def test_a_damaged_body_is_refused(damage):
    with pytest.raises(Refusal) as refused:
        decompress(damage(gzip.compress(BODY)), b"gzip", 10_000)
    assert (refused.value.status, refused.value.problem.code) == (422, "wrong_encoding")


@pytest.mark.parametrize("path", ["/act", "/interpolate"])
def test_an_encoding_that_is_not_supported_is_refused_with_those_that_are(service, path):
    answer = service.post(path, content=BODY, headers={"content-encoding": "br"})
    problem(answer, 415, "wrong_encoding", "content-encoding")
    assert answer.headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(("encoding", "data"), CASES)
def test_both_ways_into_the_service_take_compressed_bodies(service, encoding, data):
    plain = service.post("/act", content=BODY).json()
    packed = service.post("/act", content=data, headers={"content-encoding": encoding})
    assert packed.json() == plain
    path = {"path": [skill_rows(2)[0].tolist(), skill_rows(2)[1].tolist()], "steps": 3}
    body = gzip.compress(json.dumps(path).encode())
    answer = service.post("/interpolate", content=body, headers={"content-encoding": "gzip"})
    assert answer.json() == service.post("/interpolate", json=path).json()


def test_a_body_that_unpacks_to_too_much_is_refused(service):
    body = gzip.compress(b" " * 200_001)
    problem(service.post("/act", content=body, headers={"content-encoding": "gzip"}), 413, "body_too_large")
    problem(service.post("/interpolate", content=body, headers={"content-encoding": "gzip"}), 413, "body_too_large")
