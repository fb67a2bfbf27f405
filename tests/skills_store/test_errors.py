"""What the errors say: one line that is for users."""

from __future__ import annotations

import pickle

import pytest

from skills_store.errors import UnreachableOrigin

TOLD = "Generic S3 error: HTTP error: error sending request"


@pytest.mark.parametrize("later", ["", " (a moment ago)"])
def test_the_debug_text_of_a_cloud_is_not_told(later: str) -> None:
    error = UnreachableOrigin("s3://b", f'{TOLD} Debug source: Generic {{ store: "S3", source: (a moment{later}')
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == f"s3://b cannot be reached: {TOLD}{later}"
    assert str(UnreachableOrigin("s3://b", "AccessDenied: no")) == "s3://b cannot be reached: AccessDenied: no"
