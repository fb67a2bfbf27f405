"""Problem: the body of every reply that is not a success. Reads no numbers and opens no file."""

from __future__ import annotations

import os
from typing import Any, Literal, Self, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field

from serving.wire.reply import JSON, Headers, Reply
from skills_store.errors import (
    InvalidReference,
    NotAStore,
    StoreError,
    Unknown,
    UnreachableOrigin,
    UnusableKey,
    WrongKind,
    error_codes,
)

# Of the service's own problems. Those about the store have the codes of its errors.
Code = Literal[
    "not_json",
    "not_msgpack",
    "missing_field",
    "unknown_field",
    "given_twice",
    "unsupported_option",
    "wrong_type",
    "wrong_shape",
    "not_finite",
    "not_a_rotation",
    "not_a_direction",
    "not_on_the_sphere",
    "goal_out_of_range",
    "not_sampled",
    "no_one_path",
    "unknown_clip",
    "unknown_model",
    "not_a_frame",
    "unknown_task",
    "wrong_parameter",
    "not_simulated",
    "extra_missing",
    "batch_mismatch",
    "batch_too_large",
    "clip_unreadable",
    "clip_too_short",
    "bad_upload",
    "request_timeout",
    "body_too_large",
    "head_too_large",
    "unsupported_encoding",
    "corrupt_encoding",
    "no_key",
    "wrong_key",
    "not_permitted",
    "rate_limited",
    "overloaded",
    "draining",
    "not_found",
    "method_not_allowed",
    "http_error",
    "internal_error",
]
CODES = frozenset((*get_args(Code), *error_codes()))  # and those of the store
KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
LARGEST_SHOWN = 10**30  # a whole number from here on is not written out
RETRY_AFTER = 5  # s: by then a store may be reachable, or a version repaired


class Problem(BaseModel):
    """Why a request was refused. Programs read `code` and `field`; people read `message`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "code": "wrong_shape",
                    "message": "z has 3 numbers; it needs 64",
                    "field": "z",
                    "expected": "[64] or [B, 64], B up to 1024, or a clip's name",
                }
            ]
        },
    )

    code: str = Field(json_schema_extra={"enum": sorted(CODES)})
    message: str
    field: str | None = Field(
        default=None, description="Path of the value at fault: `state`, `state[2][17]`, `z`"
    )
    expected: str | None = Field(default=None, description="What would have been accepted")


class InferenceProblem(Problem):
    """The same under /v2, where the Open Inference Protocol has `error`."""

    error: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {
        "model": Problem,
        "description": "This service needs a key, and got none that is in its key file",
    },
    403: {"model": Problem, "description": "The key has not the scope that this route needs"},
    404: {
        "model": Problem,
        "description": "No such skill, version, alias or controller; the message lists what exists",
    },
    408: {
        "model": Problem,
        "description": "The request has not arrived in time; its connection is closed",
    },
    413: {"model": Problem, "description": "The body is larger than this service reads"},
    415: {
        "model": Problem,
        "description": "The Content-Encoding is not read; Accept-Encoding lists those that are",
    },
    422: {
        "model": Problem,
        "description": "A value cannot be used; `field` is its path, `expected` what would be",
    },
    429: {
        "model": Problem,
        "description": "More requests than the key may make; Retry-After has the seconds to wait",
    },
    431: {"model": Problem, "description": "The headers are larger than this service reads"},
    500: {
        "model": Problem,
        "description": "A defect of the service; the message has the request id that its log has",
    },
    503: {
        "model": Problem,
        "description": "Too much is waiting, or the store cannot give this version now",
    },
}
PLAN_PROBLEMS: dict[int | str, dict[str, Any]] = {
    501: {"model": Problem, "description": "This service has not the extra `plan`"}
}
INFERENCE_PROBLEMS = {
    status: response | {"model": InferenceProblem} for status, response in PROBLEMS.items()
}


class Refusal(Exception):
    """Raised anywhere under a route; answered as its Problem."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        field: str | None = None,
        expected: str | None = None,
        *,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(code=code, message=message, field=field, expected=expected)
        self.retry_after = retry_after  # s; for requests that may succeed later
        self.headers: Headers = ()  # of the reply, in addition to those of every Problem
        self.hold = 0.0  # s before it is answered

    def with_hold(self, seconds: float) -> Self:
        """This refusal, delayed, because a client may repeat refused requests at once."""
        self.hold = seconds
        return self

    def with_header(self, name: bytes, value: bytes) -> Self:
        """This refusal, whose reply has one header more."""
        self.headers = (*self.headers, (name, value))
        return self

    def reply(self, path: str = "") -> Reply:
        """The reply. Under /v2 it has the Open Inference Protocol's `error`."""
        body = self.problem.model_dump()
        if path.startswith("/v2"):
            body = {"error": f"{self.problem.code}: {self.problem.message}"} | body
        headers: list[tuple[bytes, bytes]] = [JSON, *self.headers]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        if self.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        return Reply(self.status, orjson.dumps(body), tuple(headers))


def invalid(
    code: str, message: str, field: str | None = None, expected: str | None = None
) -> Refusal:
    """The client's own value is at fault."""
    return Refusal(422, code, message, field, expected)


def from_store(error: StoreError | OSError, field: str | None) -> Refusal:
    """The client named something missing (404), or the store cannot provide it now (503)."""
    if isinstance(error, OSError):
        message = f"the store cannot be read: {error.strerror}"
        return Refusal(503, "store_error", message, field, retry_after=RETRY_AFTER)
    if isinstance(error, Unknown) and error.code != "unknown_parent":
        exists = f"one of: {', '.join(error.exists)}" if error.exists else None
        return Refusal(404, error.code, _without_path(error), field, exists)
    if isinstance(error, InvalidReference):
        return invalid("invalid_reference", str(error), field, "name, name@version or name@alias")
    if isinstance(error, WrongKind):
        return invalid("wrong_kind", str(error), field, f"a version of kind {error.args[2]!r}")
    return Refusal(503, error.code, _without_path(error), field, retry_after=RETRY_AFTER)


def _without_path(error: StoreError) -> str:
    """The error's message without the store's path, which clients must not see."""
    if isinstance(error, (UnreachableOrigin, NotAStore)):
        return "the store cannot be reached"
    if isinstance(error, UnusableKey):
        return "a trusted key of the service cannot be read"
    if isinstance(error, Unknown) and os.sep in error.args[2]:
        return str(type(error)(*error.args[:2]))
    return str(error)


def quoted(text: object, limit: int = 80) -> str:
    """A client's text, safe to repeat in a message: ASCII, one line, short."""
    escaped = ascii(text.decode("latin-1") if isinstance(text, bytes) else text)
    return escaped if len(escaped) <= limit else escaped[:limit] + "..."


def describe_value(value: object) -> str:
    """A client's value, safe to repeat in a message: a scalar itself, otherwise its kind."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST_SHOWN):
        return str(value)
    if isinstance(value, int):
        return "a whole number of more than 30 digits"
    return KINDS.get(type(value), "a list")
