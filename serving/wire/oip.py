"""The Open Inference Protocol v2: infer requests and replies, with the binary tensor extension.
Independent of the models.

https://kserve.github.io/website/docs/concepts/architecture/data-plane/v2-protocol and, for binary
tensors, Triton's extension_binary_data: the JSON comes first, and `Inference-Header-Content-Length`
is its length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from serving.wire import json
from serving.wire.problems import Refusal, invalid, quoted
from serving.wire.raw import FLOAT32
from serving.wire.reply import JSON, Headers

LENGTH = b"inference-header-content-length"
LARGEST = 2**28  # numbers in a tensor: 1 GiB, more than any body holds
# Parameters of Triton's extensions that change what is computed or where it is written. Priority
# and timeout change neither: they are ignored, as by Triton for a model without queue policy.
UNSUPPORTED = frozenset(
    {
        "classification",
        "sequence_id",
        "sequence_start",
        "sequence_end",
        "shared_memory_region",
        "shared_memory_byte_size",
        "shared_memory_offset",
    }
)
RESERVED = "triton_"  # prefix of the parameters that Triton reserves
Array = np.ndarray
Parameters = dict[str, Any] | None


class Loose(BaseModel):
    """Other servers' clients send more fields than are read here, and null for an absent one."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Input(Loose):
    name: str
    shape: list[Any] = Field(max_length=8)  # `_shape` reads it
    datatype: str
    parameters: Parameters = None
    data: Any = None


class Output(Loose):
    name: str
    parameters: Parameters = None


class Infer(Loose):
    id: str | None = None
    inputs: list[Input] = Field(max_length=16)
    outputs: list[Output] | None = Field(default=None, max_length=16)
    parameters: Parameters = None


@dataclass(frozen=True)
class Call:
    id: str | None
    tensors: dict[str, Array]
    outputs: tuple[str, ...]  # of the reply; empty: all
    binary: dict[str, bool]  # of the outputs that set `binary_data`
    binary_by_default: bool


def decode(body: bytes, headers: Mapping[bytes, bytes]) -> Call:
    """Raises Refusal."""
    header = headers.get(LENGTH)
    end = len(body) if header is None else _length(header, len(body))
    request = _validate(json.decode(body[:end], headers))
    outputs = request.outputs or []
    _refuse_twice("inputs", [tensor.name for tensor in request.inputs])
    _refuse_twice("outputs", [tensor.name for tensor in outputs])
    by_default = _flag(
        _options(request.parameters, "parameters"), "binary_data_output", "parameters"
    )
    binary = {}
    for i, tensor in enumerate(outputs):
        path = f"outputs.{i}.parameters"
        flag = _flag(_options(tensor.parameters, path), "binary_data", path)
        if flag is not None:
            binary[tensor.name] = flag
    tensors = _tensors(request.inputs, body, end, binary=header is not None)
    return Call(
        request.id, tensors, tuple(tensor.name for tensor in outputs), binary, bool(by_default)
    )


def encode(
    call: Call,
    model: str,
    version: str,
    outputs: Mapping[str, Array],
    parameters: Mapping[str, Any],
) -> tuple[bytes, Headers]:
    """The reply with these parameters, each output as JSON or binary as its request chose."""
    rows = []
    parts = []
    for name, array in outputs.items():
        output: dict[str, Any] = {"name": name, "datatype": "FP32", "shape": list(array.shape)}
        if call.binary.get(name, call.binary_by_default):
            parts.append(np.ascontiguousarray(array, FLOAT32).tobytes())
            output["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            output["data"] = np.ascontiguousarray(array, FLOAT32).reshape(-1)
        rows.append(output)
    reply: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": rows}
    if call.id:
        reply["id"] = call.id
    if parameters:
        reply["parameters"] = dict(parameters)
    head = orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY)
    if not parts:
        return head, (JSON,)
    media = (b"content-type", b"application/octet-stream")
    return b"".join([head, *parts]), (media, (LENGTH, b"%d" % len(head)))


def _length(header: bytes, most: int) -> int:
    """Bytes of JSON at the beginning of a body of `most` bytes."""
    if not (header.isdigit() and len(header) < 12 and int(header) <= most):
        name = LENGTH.decode()
        raise invalid("wrong_type", f"{name} is {quoted(header)}", name, "the length of the JSON")
    return int(header)


def _validate(fields: object) -> Infer:
    try:
        return Infer.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"])) or None
        message = f"the request is not usable: {first['msg']}"
        raise invalid("wrong_type", message, path, "an infer request") from None


def _refuse_twice(field: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            message = f"{field} has {quoted(name)} more than once"
            raise invalid("given_twice", message, field, "each name once")


def _options(parameters: Parameters, path: str) -> dict[str, Any]:
    """The parameters that are not null. An unimplemented one may be 0, false or empty, which
    clients send when they do not use it; any other value raises Refusal."""
    options = {name: value for name, value in (parameters or {}).items() if value is not None}
    for name, value in options.items():
        if value and (name in UNSUPPORTED or name.startswith(RESERVED)):
            parameter = quoted(name)[1:-1]
            message = f"the parameter {parameter} is not implemented by this service"
            raise invalid("unsupported_option", message, f"{path}.{parameter}", "no such parameter")
    return options


def _flag(options: dict[str, Any], name: str, path: str) -> bool | None:
    value = options.get(name)
    if value is not None and type(value) is not bool:
        message = f"{path}.{name} is {quoted(value)}"
        raise invalid("wrong_type", message, f"{path}.{name}", "true or false")
    return value


def _tensors(inputs: list[Input], body: bytes, end: int, binary: bool) -> dict[str, Array]:
    """Each input, from its own data or from the bytes after the JSON, which ends at `end`.
    `binary`: the request has the header that allows such bytes. Raises Refusal."""
    tensors = {}
    start = end
    for i, tensor in enumerate(inputs):
        size = _options(tensor.parameters, f"inputs.{i}.parameters").get("binary_data_size")
        if size is None:
            tensors[tensor.name] = _from_json(tensor)
            continue
        if not binary:
            message = f"input {quoted(tensor.name)} is binary, but {LENGTH.decode()} is missing"
            raise invalid("missing_field", message, LENGTH.decode(), "the length of the JSON")
        if tensor.data is not None:
            message = f"input {quoted(tensor.name)} has both data and binary_data_size"
            raise invalid("given_twice", message, quoted(tensor.name)[1:-1], "one of the two")
        tensors[tensor.name] = _from_bytes(tensor, body, start, size)
        start += tensors[tensor.name].nbytes
    if start != len(body):
        message = f"{len(body) - start} bytes of the body belong to no input"
        raise invalid("wrong_shape", message, "inputs")
    return tensors


def _from_bytes(tensor: Input, body: bytes, start: int, size: object) -> Array:
    shape = _shape(tensor)
    if type(size) is not int or size != 4 * math.prod(shape) or size > len(body) - start:
        raise _wrong(tensor, f"binary_data_size is {quoted(size)}")
    return np.frombuffer(body, FLOAT32, size // 4, start).reshape(shape)


def _from_json(tensor: Input) -> Array:
    """Data nested as in `shape`, or flat: the protocol allows both."""
    shape = _shape(tensor)
    numbers, nesting = _flatten(tensor)
    if not set(map(type, numbers)) <= {int, float}:
        raise _wrong(tensor, "its data are not all numbers")
    if len(numbers) != math.prod(shape):
        raise _wrong(tensor, f"its data are {len(numbers)} numbers")
    if nesting not in (shape, (len(numbers),)):
        raise _wrong(tensor, f"its data are nested as {quoted(list(nesting))}")
    with np.errstate(over="ignore"):
        flat = np.array([x if abs(x) < 1e39 else np.inf for x in numbers], np.float32)
    return flat.reshape(shape)


def _flatten(tensor: Input) -> tuple[list[Any], tuple[int, ...]]:
    """The elements of nested lists in row-major order, and the length of the lists of each
    level."""
    elements: list[Any] = [tensor.data]
    nesting: list[int] = []
    while elements and isinstance(elements[0], list):
        if not all(isinstance(inner, list) for inner in elements):
            raise _wrong(tensor, "its data are ragged")
        lengths = {len(inner) for inner in elements}
        if len(lengths) > 1:
            raise _wrong(tensor, "its data are ragged")
        nesting.append(lengths.pop())
        elements = [element for inner in elements for element in inner]
    return elements, tuple(nesting)


def _shape(tensor: Input) -> tuple[int, ...]:
    """Each axis is bounded, not only their product: numpy refuses a giant axis beside a 0."""
    if tensor.datatype != "FP32":
        message = f"{quoted(tensor.name)} is {quoted(tensor.datatype)}"
        raise invalid("wrong_type", message, quoted(tensor.name)[1:-1], "FP32")
    if not all(type(size) is int and 0 < size <= LARGEST for size in tensor.shape):
        raise _wrong(tensor, f"a size is a whole number from 1 to {LARGEST}")
    if math.prod(tensor.shape) > LARGEST:
        raise _wrong(tensor, f"a tensor has at most {LARGEST} numbers")
    return tuple(tensor.shape)


def _wrong(tensor: Input, why: str) -> Refusal:
    return invalid(
        "wrong_shape",
        f"input {quoted(tensor.name)} of shape {quoted(tensor.shape)}: {why}",
        quoted(tensor.name)[1:-1],
        "as many numbers, or bytes of float32, as the shape says",
    )
