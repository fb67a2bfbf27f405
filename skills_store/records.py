"""Version records: `v/00000007.json`, created once by link(2), never rewritten. Creating one IS publishing.

Each holds the digest of the manifest and of the record before it, so that a rewritten history shows in `verify`.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, ValidationError

from skills_store.blobs import describe
from skills_store.durable import make_dirs, sync_dir, temporary
from skills_store.errors import CorruptRecord
from skills_store.manifest import Blob, Digest, Frozen, Name

FILE = re.compile(r"([0-9]{8})\.json")


class Record(Frozen):
    schema_version: Literal[1] = 1
    name: Name
    number: int
    manifest: Blob
    created: AwareDatetime
    prev: Digest | None  # of the bytes of the record before; None for the first, or after a damaged one


def numbers(directory: Path) -> tuple[int, ...]:
    """Numbers taken, ascending, whether or not their records can be read."""
    try:
        found = [FILE.fullmatch(entry) for entry in os.listdir(directory)]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(sorted(int(match[1]) for match in found if match))


def path(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}.json"


def read(directory: Path, name: str, number: int) -> Record:
    return parse(raw(directory, name, number), name, number)


def raw(directory: Path, name: str, number: int) -> bytes:
    try:
        return path(directory, number).read_bytes()
    except OSError as error:
        raise CorruptRecord(f"{name}@{number}", f"its record cannot be read ({error.strerror})") from error


def parse(data: bytes, name: str, number: int) -> Record:
    where = f"{name}@{number}"
    try:
        record = Record.model_validate_json(data)
    except ValidationError as error:
        raise CorruptRecord(where, f"its record is not one ({error.error_count()} faults)") from error
    if (record.name, record.number) != (name, number):
        raise CorruptRecord(where, f"its record is that of {record.name}@{record.number}")
    return record


def commit(directory: Path, staging: Path, name: str, manifest: Blob) -> Record:
    """Take the next free number. Before the link nothing is visible; after it, the whole version is."""
    make_dirs(directory)
    number = max(numbers(directory), default=0) + 1
    while True:
        record = Record(
            name=name,
            number=number,
            manifest=manifest,
            created=datetime.now(UTC),
            prev=_digest_before(directory, name, number),
        )
        with temporary(staging, record.model_dump_json().encode()) as temp:
            try:
                os.link(temp, path(directory, number))  # the commit point
            except FileExistsError:  # another publisher took this number: ours is the one after
                number += 1
                continue
        sync_dir(directory)
        return record


def _digest_before(directory: Path, name: str, number: int) -> str | None:
    if number == 1:
        return None
    try:
        before = raw(directory, name, number - 1)
        parse(before, name, number - 1)
    except CorruptRecord:
        return None  # do not seal damaged bytes into the chain: the record may be restored
    return describe(before).digest
