"""Encodings of a body, by Content-Type. Each turns bytes into the same plain object, and a reply's
fields into bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from serving.wire import json, msgpack, raw
from serving.wire.reply import Headers

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Encoding:
    """`decode` raises Refusal for bytes in another format; it does not check the fields' values."""

    decode: Callable[[bytes, Mapping[bytes, bytes]], object]
    encode: Callable[[Fields], tuple[bytes, Headers]]


JSON = Encoding(json.decode, json.encode)
ENCODINGS = {
    b"application/json": JSON,
    b"application/msgpack": Encoding(msgpack.decode, msgpack.encode),
    b"application/octet-stream": Encoding(raw.decode, raw.encode),
}


def choose_encoding(headers: Mapping[bytes, bytes]) -> Encoding:
    """By Content-Type; unknown types are read as JSON, because `curl -d` sends urlencoded."""
    kind = headers.get(b"content-type", b"")
    return ENCODINGS.get(kind) or ENCODINGS.get(kind.partition(b";")[0].strip().lower(), JSON)
