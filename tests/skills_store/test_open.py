"""Opening a store by text: a folder, a bucket or the default; a mistyped bucket is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from skills_store.errors import InvalidStore
from skills_store.open import open_store
from skills_store.store import default_root


@pytest.mark.parametrize("text", ["s3:/bucket/prefix", "S3:bucket", "gs:", "file:/srv"])
def test_a_mistyped_address_is_no_folder(text: str) -> None:
    with pytest.raises(
        InvalidStore, match=r"write s3://bucket/prefix, gs://\.\.\. or az://\.\.\., or \./"
    ):
        open_store(text)


def test_folder_name_with_a_colon_opens_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("./s3:/bucket").root == Path("s3:/bucket")
    assert open_store(tmp_path / "a:b").root == tmp_path / "a:b"


def test_empty_store_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPERTOIRE_STORE", "")
    assert open_store().root == default_root()
