"""Bodies: bytes in, a wire model or an upload out; arrays in, JSON bytes out. Knows no skill."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import orjson
from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from serving.problems import Code, invalid, quoted

Model = TypeVar("Model", bound=BaseModel)

CODES: dict[str, Code] = {"json_invalid": "not_json", "missing": "missing_field", "extra_forbidden": "unknown_field"}


async def parse(request: Request, model: type[Model]) -> Model:
    """The JSON body, whatever content type it was sent under (curl -d says urlencoded)."""
    try:
        # One pass over the raw bytes. Through FastAPI's own body parameters the same costs about six times as much.
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise _refusal(error, model) from None


def _refusal(error: ValidationError, model: type[BaseModel]):
    first = error.errors(include_url=False, include_input=False)[0]
    code = CODES.get(first["type"], "wrong_type")
    fields = model.model_fields
    name = str(first["loc"][0]) if first["loc"] else None
    if code == "not_json":
        return invalid(code, first["msg"], None, f"a JSON object with {', '.join(fields)}")
    if name is None:
        return invalid(code, "the body is not a JSON object", None, f"a JSON object with {', '.join(fields)}")
    if code == "unknown_field":
        there = ", ".join(fields)
        return invalid(code, f"no field {quoted(name)}; there are: {there}", quoted(name)[1:-1], f"only {there}")
    says = {"missing_field": "is missing"}.get(code, f"is not usable: {first['msg']}")
    return invalid(code, f"{name} {says}", name, fields[name].description)


async def parse_upload(request: Request, max_body: int) -> tuple[bytes, str, str | None]:
    """A multipart form's (bytes, file name, skill)."""
    expected = "multipart/form-data with the field file, and skill if it is not the default"
    try:
        async with request.form(max_files=1, max_fields=1, max_part_size=max_body) as form:
            _refuse_other_fields(form, expected)
            file, skill = form.get("file"), form.get("skill")
            if not isinstance(file, UploadFile):
                raise invalid("missing_field", "the form has no uploaded file", "file", expected)
            if isinstance(skill, UploadFile):
                raise invalid("wrong_type", "skill is a file, not text", "skill", expected)
            return await file.read(), file.filename or "", skill
    except HTTPException as error:  # how Starlette says that the form is malformed
        raise invalid("bad_upload", f"the form cannot be read: {quoted(error.detail)}", None, expected) from None


def _refuse_other_fields(form: FormData, expected: str) -> None:
    for name in form:
        if name not in ("file", "skill"):
            raise invalid("unknown_field", f"no field {quoted(name)} in the form", quoted(name)[1:-1], expected)


def reply(content: dict[str, Any]) -> Response:
    """Arrays are written in float32's own shortest digits: half the bytes, and the same bits when read as float32."""
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")


def in_kind(array: np.ndarray, one: bool) -> np.ndarray:
    """A row for a row, a batch for a batch."""
    return np.ascontiguousarray(array[0] if one else array)
