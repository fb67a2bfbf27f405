"""Problem: the one shape of every reply that is not a success. Nothing here looks at numbers or opens a file."""

from __future__ import annotations

import os
from typing import Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field

from serving.reply import JSON, Reply
from skills_store.errors import InvalidReference, StoreError, Unknown, WrongKind

Code = Literal[
    "not_json",
    "not_msgpack",
    "missing_field",
    "unknown_field",
    "wrong_type",
    "wrong_shape",
    "not_finite",
    "not_a_rotation",
    "not_a_direction",
    "not_on_the_sphere",
    "not_sampled",
    "batch_mismatch",
    "batch_too_large",
    "clip_unreadable",
    "clip_too_short",
    "bad_upload",
    "body_too_large",
    "too_slow",
    "no_key",
    "wrong_key",
    "not_permitted",
    "rate_limited",
    "overloaded",
    "draining",
    "invalid_reference",
    "unknown_skill",
    "unknown_version",
    "unknown_alias",
    "unknown_parent",
    "wrong_kind",
    "corrupt_blob",
    "corrupt_record",
    "unsupported_layout",
    "unusable_graph",
    "store_error",
    "not_found",
    "method_not_allowed",
    "http_error",
    "internal_error",
]
CODES = frozenset(get_args(Code))
RETRY_AFTER = 5  # s: by then a store may be back, or a version mended


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
                    "expected": "[64] or [B, 64], B up to 1024",
                }
            ]
        },
    )

    code: Code
    message: str
    field: str | None = Field(default=None, description="Path of the value at fault: `state`, `state[2][17]`, `z`")
    expected: str | None = Field(default=None, description="What would have been accepted")


class Refusal(Exception):
    """Raised anywhere under a route; answered as its Problem."""

    def __init__(
        self,
        status: int,
        code: Code,
        message: str,
        field: str | None = None,
        expected: str | None = None,
        *,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(code=code, message=message, field=field, expected=expected)
        self.retry_after = retry_after  # s; for what may well succeed later

    def reply(self) -> Reply:
        later = ((b"retry-after", b"%d" % self.retry_after),) if self.retry_after is not None else ()
        return Reply(self.status, self.problem.model_dump_json().encode(), (JSON, *later))


def invalid(code: Code, message: str, field: str | None = None, expected: str | None = None) -> Refusal:
    """The client's own value is at fault."""
    return Refusal(422, code, message, field, expected)


def from_store(error: StoreError | OSError, field: str | None) -> Refusal:
    """The client named something that is not there (404), or the store cannot give it now (503)."""
    if isinstance(error, OSError):
        message = f"the store cannot be read: {error.strerror}"
        return Refusal(503, "store_error", message, field, retry_after=RETRY_AFTER)
    if isinstance(error, Unknown) and error.code in CODES and error.code != "unknown_parent":
        exists = f"one of: {', '.join(error.exists)}" if error.exists else None
        return Refusal(404, cast(Code, error.code), _without_path(error), field, exists)
    if isinstance(error, InvalidReference):
        return invalid("invalid_reference", str(error), field, "name, name@version or name@alias")
    if isinstance(error, WrongKind):
        return invalid("wrong_kind", str(error), field, f"a version of kind {error.args[2]!r}")
    code = cast(Code, error.code) if error.code in CODES else "store_error"
    return Refusal(503, code, _without_path(error), field, retry_after=RETRY_AFTER)


def _without_path(error: StoreError) -> str:
    """The error in its own words, but where the store lies is no client's business."""
    if isinstance(error, Unknown) and os.sep in error.args[2]:
        return str(type(error)(*error.args[:2]))
    return str(error)


def quoted(text: object, limit: int = 80) -> str:
    """A client's text, safe to repeat in a message: ASCII, one line, short."""
    shown = ascii(text)
    return shown if len(shown) <= limit else shown[:limit] + "..."
