"""Deletions: `v/00000007.deleted.json`, created once beside the record. Creating one IS deleting.

The record stays: the number is never reused, and the chain of records still verifies. gc frees the
version's files after its grace.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, ValidationError

from skills_store.disk.durable import Create
from skills_store.errors import CorruptRecord
from skills_store.frozen_model import FrozenModel
from skills_store.manifest import Digest, Name


class Tombstone(FrozenModel):
    schema_version: Literal[1] = 1
    name: Name
    number: int
    digest: Digest | None  # of the manifest; None where the record could not be read
    at: AwareDatetime
    by: str
    why: str

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} UTC by {self.by}: {self.why}"


def read(directory: Path, name: str, number: int) -> Tombstone:
    ref = f"{name}@{number}"
    try:
        stone = Tombstone.model_validate_json(path(directory, number).read_bytes())
    except OSError as error:
        raise CorruptRecord(
            ref, f"it is deleted, but its tombstone cannot be read ({error.strerror})"
        ) from error
    except ValidationError as error:
        raise CorruptRecord(
            ref, f"it is deleted, but its tombstone has {error.error_count()} faults"
        ) from error
    if (stone.name, stone.number) != (name, number):
        raise CorruptRecord(ref, f"its tombstone is that of {stone.name}@{stone.number}")
    return stone


def commit(directory: Path, create: Create, stone: Tombstone) -> Tombstone:
    """Creating the file deletes the version."""
    done = f"{stone.name}@{stone.number} is deleted"
    create(path(directory, stone.number), stone.model_dump_json().encode(), done)
    return stone


def path(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}.deleted.json"
