"""JSON. Numbers go out in float32's own shortest digits: half the bytes, and the same bits when read as float32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pydantic_core

from serving.problems import invalid
from serving.reply import JSON, Headers


def decode(body: bytes, _: Mapping[bytes, bytes]) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    # The slower parser reads NaN and integers of any length, too, so that the refusal can name the number at fault.
    try:
        return pydantic_core.from_json(body)
    except ValueError as error:
        raise invalid("not_json", f"the body is not JSON: {error}", None, "a JSON object") from None


def encode(fields: Mapping[str, Any]) -> tuple[bytes, Headers]:
    return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY), (JSON,)
