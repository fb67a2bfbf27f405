"""Each error has a unique code, is in the diagram of `errors`, and has a one-line message."""

from __future__ import annotations

import pickle

import pytest

from serving.wire.problems import CODES, Problem
from skills_store import errors
from skills_store.errors import StoreError, UnreachableOrigin, error_codes

CLOUD = "Generic S3 error: HTTP error: error sending request"


def test_every_error_class_has_a_unique_code() -> None:
    codes = error_codes()
    classes = {name: found for name, found in vars(errors).items() if _is_error(found)}
    assert {cls.__name__: cls.code for cls in codes.values()} == {
        name: cls.code for name, cls in classes.items()
    }
    assert [cls.code for cls in classes.values() if "code" not in vars(cls)] == []
    assert len(codes) == len(classes) > 40


def _is_error(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, StoreError)


def test_class_diagram_has_every_error() -> None:
    assert errors.__doc__ is not None
    listed = set(errors.__doc__.split())
    assert {cls.__name__ for cls in error_codes().values()} - listed == set()


def test_foreign_error_class_is_not_listed_in_error_codes() -> None:
    class Foreign(StoreError):
        code = "foreign"

    assert "foreign" not in error_codes()
    assert Foreign.code == "foreign"


def test_the_service_documents_every_code() -> None:
    assert set(error_codes()) <= CODES
    assert Problem.model_json_schema()["properties"]["code"]["enum"] == sorted(CODES)


@pytest.mark.parametrize("later", ["", " (a moment ago)"])
def test_debug_text_of_a_cloud_error_is_not_shown(later: str) -> None:
    error = UnreachableOrigin(
        "s3://b", f'{CLOUD} Debug source: Generic {{ store: "S3", source: (a moment{later}'
    )
    assert (
        str(error)
        == str(pickle.loads(pickle.dumps(error)))
        == f"s3://b cannot be reached: {CLOUD}{later}"
    )
    assert (
        str(UnreachableOrigin("s3://b", "AccessDenied: no"))
        == "s3://b cannot be reached: AccessDenied: no"
    )
