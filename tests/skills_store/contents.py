"""What is written to a store under test, what is on its disk, and what its versions need."""

from __future__ import annotations

from pathlib import Path

from skills_store.store import Store
from tests import tiny

FILES = [tiny.skills_files(seed) for seed in range(3)]


def publish(store: Store, seed: int = 0) -> None:
    """Publish files made beforehand, so that a fault hits the store and not their making."""
    store.publish(tiny.skills_manifest(), FILES[seed])


def live(store: Store) -> list[int]:
    return [v.number for v in store.versions("humanoid")] if store.names() else []


def blobs(store: Store) -> set[str]:
    return {f"sha256:{path.name}" for path in _files(store.root / "blobs/sha256")}


def staged(store: Store) -> list[Path]:
    return _files(store.root / "staging")


def needed(store: Store) -> set[str]:
    """Digests of the manifests and files of the live versions."""
    versions = [version for name in store.names() for version in store.survey(name).versions]
    return {v.digest for v in versions} | {
        blob.digest for v in versions for blob in v.manifest.files.values()
    }


def assert_clean(store: Store) -> None:
    """Assert that gc leaves all that is needed, and nothing else."""
    store.gc(grace=0)
    assert store.verify() == ()
    assert blobs(store) == needed(store)
    assert staged(store) == []


def _files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []
