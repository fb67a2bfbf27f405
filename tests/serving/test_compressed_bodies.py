"""Compressed request bodies: the supported encodings and the size limit."""

import gzip
import json
import zlib

import pytest

from tests.serving.local import problem, skill_rows, state_rows

BODY = json.dumps({"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}).encode()
RAW = zlib.compressobj(wbits=-15)
FORMS = {
    "gzip": [gzip.compress(BODY)],
    "deflate": [zlib.compress(BODY), RAW.compress(BODY) + RAW.flush()],
    "identity": [BODY],
}
CASES = [(name, data) for name, forms in FORMS.items() for data in forms]


@pytest.mark.parametrize("path", ["/act", "/interpolate"])
def test_unsupported_content_encoding_returns_415_with_supported(service, path):
    response = service.post(path, content=BODY, headers={"content-encoding": "br"})
    problem(response, 415, "unsupported_encoding", "content-encoding")
    assert response.headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(("encoding", "data"), CASES)
def test_act_and_interpolate_accept_compressed_bodies(service, encoding, data):
    plain = service.post("/act", content=BODY).json()
    packed = service.post("/act", content=data, headers={"content-encoding": encoding})
    assert packed.json() == plain
    path = {"path": [skill_rows(2)[0].tolist(), skill_rows(2)[1].tolist()], "steps": 3}
    body = gzip.compress(json.dumps(path).encode())
    response = service.post("/interpolate", content=body, headers={"content-encoding": "gzip"})
    assert response.json() == service.post("/interpolate", json=path).json()


def test_body_over_the_limit_after_decompression_is_refused(service):
    body = gzip.compress(b" " * 200_001)
    problem(
        service.post("/act", content=body, headers={"content-encoding": "gzip"}),
        413,
        "body_too_large",
    )
    problem(
        service.post("/interpolate", content=body, headers={"content-encoding": "gzip"}),
        413,
        "body_too_large",
    )
