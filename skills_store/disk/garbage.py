"""What nothing needs any more: blobs that no version refers to, leases long over, and what crashed writers left behind.

Needed is what live versions, unexpired leases and recent deletions are made of. Everything younger than the grace stays,
too: a reader that has just resolved a version, or an operator who regrets, has that long.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from skills_store.disk import audit, tombstones
from skills_store.disk.blobs import Blobs
from skills_store.disk.durable import sync_dir
from skills_store.disk.leases import Lease, Leases
from skills_store.disk.shelf import Shelf
from skills_store.errors import CorruptStore, Unsweepable

HEX = re.compile(r"[0-9a-f]{64}")
GRACE = 3600.0  # s


@dataclass(frozen=True)
class Stray:
    path: Path
    bytes: int


@dataclass(frozen=True)
class Garbage:
    """What gc frees, or would free; `needed` blobs stay."""

    strays: tuple[Stray, ...] = ()
    needed: int = 0

    @property
    def bytes(self) -> int:
        return sum(stray.bytes for stray in self.strays)


def find(shelves: Sequence[Shelf], blobs: Blobs, leases: Leases, since: datetime) -> Garbage:
    """Everything older than `since` that nothing later needs. Nothing is, while anything is lost or cannot be read."""
    for shelf in shelves:
        _check_whole(shelf)
    if fault := next(audit.bound(shelves), None):
        raise Unsweepable(fault.message)
    try:
        held = leases.all()
        needed = frozenset().union(*_needed(shelves, held, since))
    except CorruptStore as error:
        raise Unsweepable(str(error)) from error
    keep, over = {digest.removeprefix("sha256:") for digest in needed}, {x.id for x in held if x.until <= since}
    unneeded = (s for s in _older(blobs.root, since) if HEX.fullmatch(s.path.name) and s.path.name not in keep)
    ended = (s for s in _older(leases.directory, since) if s.path.stem in over)
    return Garbage((*unneeded, *ended, *_older(blobs.staging, since)), len(keep))


def sweep(found: Garbage, shelves: Sequence[Shelf]) -> None:
    """Deletions become durable before their blobs go: one lost in a power cut would leave a version without files."""
    for shelf in shelves:
        if shelf.records.is_dir():
            sync_dir(shelf.records)
    for stray in found.strays:
        os.unlink(stray.path)
    for directory in {stray.path.parent for stray in found.strays}:
        sync_dir(directory)


def _check_whole(shelf: Shelf) -> None:
    # A deleted version's record is needed for the grace only, and `_needed` sees to that.
    deleted = frozenset(shelf.deleted())
    if fault := next(audit.structure(shelf, settled=deleted), None):
        raise Unsweepable(fault.message)
    for move in shelf.aliases.readable():
        if move.number in deleted:
            raise Unsweepable(f"{shelf.name}@{move.alias} points to {shelf.name}@{move.number}, which is deleted")


def _needed(shelves: Sequence[Shelf], leases: Sequence[Lease], since: datetime) -> Iterator[frozenset[str]]:
    by_name = {shelf.name: shelf for shelf in shelves}
    for shelf in shelves:
        for number in _standing(shelf, since):
            yield shelf.needs(number)
    for lease in leases:
        if lease.until > since:
            if lease.name not in by_name:
                raise CorruptStore(str(lease), f"{lease.ref} is not there")
            yield by_name[lease.name].needs(lease.number)


def _standing(shelf: Shelf, since: datetime) -> Iterator[int]:
    """Versions, and those that were deleted within the grace, unless a sweep of a shorter grace has freed them already."""
    deleted = frozenset(shelf.deleted())
    for number in sorted({*shelf.taken(), *deleted}):  # a record may be lost, and its tombstone there
        recent = number in deleted and tombstones.read(shelf.records, shelf.name, number).at > since
        if number not in deleted or (recent and not shelf.swept(number)):
            yield number


def _older(directory: Path, since: datetime) -> Iterator[Stray]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # a dry run keeps no one from finishing meanwhile
            found = entry.stat(follow_symlinks=False)
            if entry.is_file(follow_symlinks=False) and found.st_mtime <= since.timestamp():
                yield Stray(Path(entry.path), found.st_size)
