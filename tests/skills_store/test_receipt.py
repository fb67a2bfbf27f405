"""A run knows what it has published: that many samples, in a store that still has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from skills_store import receipt
from skills_store.store import Store
from tests import tiny


def test_a_receipt_is_for_its_samples_and_its_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    version = tiny.publish_tiny(store)
    assert receipt.noted(tmp_path, store, 100) is None
    receipt.note(tmp_path, version, 100)
    assert receipt.noted(tmp_path, store, 100) == version
    assert receipt.noted(tmp_path, store, 200) is None
    assert receipt.noted(tmp_path, Store(tmp_path / "elsewhere"), 100) is None


@pytest.mark.parametrize("damaged", ["", "[]", '{"version": "humanoid@1"}'])
def test_a_damaged_receipt_is_named(tmp_path: Path, damaged: str) -> None:
    (tmp_path / receipt.FILE).write_text(damaged)
    with pytest.raises(ValueError, match=r"published\.json is no receipt"):
        receipt.noted(tmp_path, Store(tmp_path / "store"), 100)
