"""Version records: `v/00000007.json`, created once, never rewritten. Creating one IS publishing.

Each holds the digests of the manifest and of the previous record, so that `verify` detects a
rewritten history.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, ValidationError

from skills_store.disk.blobs import describe
from skills_store.disk.durable import Create
from skills_store.errors import CorruptRecord
from skills_store.frozen_model import FrozenModel
from skills_store.manifest import Blob, Digest, Name

FILE = re.compile(r"([0-9]{8})(\.deleted)?\.json")  # a record, or its tombstone


class Record(FrozenModel):
    schema_version: Literal[1] = 1
    name: Name
    number: int
    manifest: Blob
    created: AwareDatetime
    # Of the previous record in this store; None if there was none or it was damaged.
    prev: Digest | None


def list_taken(directory: Path) -> tuple[int, ...]:
    """Numbers taken, ascending, including those of unreadable records and deleted versions."""
    return list_numbers(directory)[0]


def list_numbers(directory: Path) -> tuple[tuple[int, ...], frozenset[int]]:
    """Numbers taken, ascending, and which of them are deleted, by the files that exist."""
    try:
        matches = [FILE.fullmatch(entry) for entry in os.listdir(directory)]
    except (FileNotFoundError, NotADirectoryError):
        return (), frozenset()
    taken = sorted(int(match[1]) for match in matches if match and not match[2])
    return tuple(taken), frozenset(int(match[1]) for match in matches if match and match[2])


def has_records(directory: Path) -> bool:
    """Whether there ever was a record; stops at the first."""
    try:
        with os.scandir(directory) as entries:
            return any(FILE.fullmatch(entry.name) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False


def record_path(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}.json"


def read(directory: Path, name: str, number: int) -> Record:
    return parse(read_raw(directory, name, number), name, number)


def read_raw(directory: Path, name: str, number: int) -> bytes:
    try:
        return record_path(directory, number).read_bytes()
    except OSError as error:
        raise CorruptRecord(
            f"{name}@{number}", f"its record cannot be read ({error.strerror})"
        ) from error


def parse(data: bytes, name: str, number: int) -> Record:
    ref = f"{name}@{number}"
    try:
        record = Record.model_validate_json(data)
    except ValidationError as error:
        raise CorruptRecord(ref, f"its record is not one ({error.error_count()} faults)") from error
    if (record.name, record.number) != (name, number):
        raise CorruptRecord(ref, f"its record is that of {record.name}@{record.number}")
    return record


def commit(
    directory: Path, create: Create, name: str, manifest: Blob, reserved: Iterable[int] = ()
) -> Record:
    """Take the next number after all that exist or are `reserved`: a lost record does not free its
    number.
    """
    number = max([0, *list_taken(directory), *reserved]) + 1
    while True:
        try:
            return commit_at(directory, create, name, number, manifest, created=datetime.now(UTC))
        except FileExistsError:  # another publisher took this number: try the next
            number += 1


def commit_at(
    directory: Path, create: Create, name: str, number: int, manifest: Blob, *, created: datetime
) -> Record:
    """Take this number, or raise FileExistsError."""
    before = _digest_before(directory, name, number)
    record = Record(name=name, number=number, manifest=manifest, created=created, prev=before)
    # The commit point: before it nothing is visible, and after it the whole version is.
    create(
        record_path(directory, number),
        record.model_dump_json().encode(),
        f"{name}@{number} is published",
    )
    return record


def current_user() -> str:
    """The user that a store's history names."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry in passwd
        return str(os.getuid())


def _digest_before(directory: Path, name: str, number: int) -> str | None:
    if number == 1:
        return None
    try:
        before = read_raw(directory, name, number - 1)
        parse(before, name, number - 1)
    except CorruptRecord:
        return None  # no digest of damaged bytes: the record may be restored
    return describe(before).digest
