"""Raw float32: the tensors end to end in the body, little-endian, row-major; names and shapes are
in the headers.

    content-type: application/octet-stream
    x-tensors: state=64x69,z=64x8         names and shapes, in the order of the body
    x-fields: {"skill": "mobility@8"}     every other field, as JSON; may be left out

A reply has the same form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from serving.wire.problems import invalid, quoted
from serving.wire.reply import Headers

MEDIA = (b"content-type", b"application/octet-stream")
FLOAT32 = np.dtype("<f4")
DTYPES = (b"", b"float32", b"<f4")
ONE = re.compile(rb"([a-z_]{1,40})=([0-9]{1,9}(?:x[0-9]{1,9}){0,2})")
EXPECTED = (
    "x-tensors: state=69,z=8 or x-tensors: state=4x69,z=4x8, and as many "
    "little-endian float32 in the body"
)


def decode(body: bytes, headers: Mapping[bytes, bytes]) -> object:
    if headers.get(b"x-dtype", b"") not in DTYPES:
        raise invalid(
            "wrong_type",
            f"x-dtype is {quoted(headers[b'x-dtype'])}",
            "x-dtype",
            "float32, little-endian",
        )
    fields = _others(headers.get(b"x-fields"))
    start = 0
    for name, shape in _shapes(headers.get(b"x-tensors", b"")):
        if fields.get(name) is not None:
            message = f"{name} is in x-tensors and in x-fields"
            raise invalid("given_twice", message, name, "each field once")
        count = math.prod(shape)
        if start + 4 * count > len(body):
            raise _wrong_length(body, headers[b"x-tensors"])
        fields[name] = np.frombuffer(body, FLOAT32, count, start).reshape(shape)
        start += 4 * count
    if start != len(body):
        raise _wrong_length(body, headers[b"x-tensors"])
    return fields


def encode(fields: Mapping[str, Any]) -> tuple[bytes, Headers]:
    tensors = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    others = {name: value for name, value in fields.items() if name not in tensors}
    shapes = ",".join(
        f"{name}={'x'.join(map(str, array.shape))}" for name, array in tensors.items()
    )
    body = b"".join([array.astype(FLOAT32, copy=False).tobytes() for array in tensors.values()])
    return body, (MEDIA, (b"x-tensors", shapes.encode()), (b"x-fields", orjson.dumps(others)))


@lru_cache(maxsize=256)
def _shapes(header: bytes) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Cached: a client sends the same shapes with every request."""
    matches = [ONE.fullmatch(part.strip()) for part in header.split(b",")]
    names = [match[1] for match in matches if match]
    if len(names) != len(matches) or len(set(names)) != len(names):
        raise invalid("wrong_shape", f"x-tensors is {quoted(header)}", "x-tensors", EXPECTED)
    return tuple(
        (match[1].decode(), tuple(map(int, match[2].split(b"x")))) for match in matches if match
    )


def _others(header: bytes | None) -> dict[str, Any]:
    if header is None:
        return {}
    try:
        fields = orjson.loads(header)
    except orjson.JSONDecodeError as error:
        raise invalid(
            "not_json", f"x-fields is not JSON: {error}", "x-fields", '{"skill": "humanoid"}'
        ) from None
    if not isinstance(fields, dict):
        raise invalid(
            "wrong_type", "x-fields is not a JSON object", "x-fields", '{"skill": "humanoid"}'
        )
    return fields


def _wrong_length(body: bytes, header: bytes):
    return invalid(
        "wrong_shape",
        f"the body's {len(body)} bytes are not those of {quoted(header)}",
        None,
        EXPECTED,
    )
