"""JSON. Numbers are written in float32's shortest digits: half the bytes, and the same bits when
read as float32.

A control loop's requests, objects whose arrays hold only numbers, are parsed straight into float32
arrays: making and type-checking a Python object per number costs more than the network. Any other
body is parsed to Python objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
import pydantic_core
import simdjson

from serving.wire.problems import invalid
from serving.wire.reply import JSON, Headers

MAX_NAMES = 32  # more than any request has
PARSER = (
    simdjson.Parser()
)  # owns the memory of one document; refuses a second while the first is referenced


def decode(body: bytes, _: Mapping[bytes, bytes]) -> object:
    with np.errstate(over="ignore"):
        fields = _arrays(body)
    if fields is not None:
        return fields
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    # The slower parser reads NaN and integers of any length, too, so that the refusal can name the
    # number at fault.
    try:
        return pydantic_core.from_json(body)
    except ValueError as error:
        raise invalid("not_json", f"the body is not JSON: {error}", None, "a JSON object") from None


def encode(fields: Mapping[str, Any]) -> tuple[bytes, Headers]:
    return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY), (JSON,)


def _arrays(body: bytes) -> dict[str, Any] | None:
    """An object of scalars and of arrays (n,) or (B, n) of numbers, not empty; None for anything
    else."""
    fields = {}
    brackets = 0
    try:
        document = PARSER.parse(body)
        # each look-up scans from the first name, so the number of names is limited
        if type(document) is not simdjson.Object or len(document) > MAX_NAMES:
            return None
        for name in document:
            if not name.isidentifier():  # simdjson reads names as C strings, to the first null
                return None
            value = document[name]
            if type(value) is simdjson.Object:  # named parts
                return None
            if type(value) is not simdjson.Array:
                fields[name] = value
                continue
            numbers = _numbers(value)
            brackets += 1 if numbers.ndim == 1 else 1 + len(numbers)
            fields[name] = numbers
        # Equal counts of names exclude duplicates; equal counts of brackets, deeper nesting.
        return fields if len(fields) == len(document) and body.count(b"[") == brackets else None
    except (ValueError, TypeError, RuntimeError, IndexError):
        return None


def _numbers(values: simdjson.Array) -> np.ndarray:
    """float32 (n,) or (B, n). Numbers beyond its range become inf; their index is refused later."""
    first = values[0]
    shape = (len(values), len(first)) if type(first) is simdjson.Array else (len(values),)
    if len(shape) == 2:
        for row in values:
            if type(row) is not simdjson.Array or len(row) != shape[1]:
                raise ValueError("rows of different lengths")
    numbers = np.frombuffer(values.as_buffer(of_type="d"), np.float64)
    return numbers.astype(np.float32).reshape(shape)
