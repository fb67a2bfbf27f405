"""MessagePack: the same fields as JSON, with binary numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ormsgpack

from serving.wire.problems import invalid
from serving.wire.reply import Headers

MEDIA = ((b"content-type", b"application/msgpack"),)


def decode(body: bytes, _: Mapping[bytes, bytes]) -> object:
    try:
        return ormsgpack.unpackb(body)
    except ValueError as error:
        raise invalid(
            "not_msgpack", f"the body is not MessagePack: {error}", None, "a map of fields"
        ) from None


def encode(fields: Mapping[str, Any]) -> tuple[bytes, Headers]:
    return ormsgpack.packb(fields, option=ormsgpack.OPT_SERIALIZE_NUMPY), MEDIA
