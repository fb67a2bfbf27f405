"""The benchmark of the store runs on a store that it fills."""

from __future__ import annotations

from pathlib import Path

from benchmarks.store import fill, listing, publishing
from skills_store.store import Store


def test_publishing_and_listing_have_times(tmp_path: Path) -> None:
    figures = {**publishing(tmp_path, 1), **listing(tmp_path, 3, 1)}
    assert all(value > 0 for value in figures.values())


def test_filled_store_lists_every_version(tmp_path: Path) -> None:
    store = Store(tmp_path / "many")
    fill(store, 3)
    summaries, faults = store.summaries("humanoid")
    assert [summary.number for summary in summaries] == [1, 2, 3]
    assert not faults
