"""Encodings of a body, by Content-Type. Each turns bytes into the same plain object, and a reply's
fields into bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from serving.wire import json, msgpack, raw
from serving.wire.problems import Refusal, invalid, quoted
from serving.wire.reply import Headers

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Encoding:
    """`decode` raises Refusal for bytes in another format; it does not check the fields' values."""

    decode: Callable[[bytes, Mapping[bytes, bytes]], object]
    encode: Callable[[Fields], tuple[bytes, Headers]]


JSON = Encoding(json.decode, json.encode)
MSGPACK = Encoding(msgpack.decode, msgpack.encode)
ENCODINGS = {
    b"application/json": JSON,
    b"application/msgpack": MSGPACK,
    b"application/octet-stream": Encoding(raw.decode, raw.encode),
}
# names of them beside those that the documentation has; no name is JSON
OTHER_NAMES = {b"": JSON, b"application/x-msgpack": MSGPACK, b"application/vnd.msgpack": MSGPACK}
BY_NAME = ENCODINGS | OTHER_NAMES


def choose_encoding(headers: Mapping[bytes, bytes]) -> Encoding:
    """By Content-Type; unknown types are read as JSON, because `curl -d` sends urlencoded."""
    kind = headers.get(b"content-type", b"")
    known = BY_NAME.get(kind) or BY_NAME.get(kind.partition(b";")[0].strip().lower())
    return known or Encoding(partial(_decode_unknown, kind), json.encode)


def _decode_unknown(kind: bytes, body: bytes, headers: Mapping[bytes, bytes]) -> object:
    """The JSON in a body of another type. Raises Refusal, which names the type, for other bytes."""
    try:
        return json.decode(body, headers)
    except Refusal as refusal:
        message = f"{refusal.problem.message}; its Content-Type {quoted(kind)} is not read"
        expected = f"one of: {b', '.join(ENCODINGS).decode()}"
        raise invalid("not_json", message, "content-type", expected) from None
