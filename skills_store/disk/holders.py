"""Who relies on a version, and so keeps it from being deleted: aliases, leases, controllers. Reads, never writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from skills_store.disk.leases import Lease
from skills_store.disk.shelf import Shelf
from skills_store.errors import CorruptRecord, StoreError


def holders(
    shelf: Shelf, number: int, shelves: Iterable[Shelf], leases: Iterable[Lease], now: datetime
) -> Iterator[str]:
    """In words, each of them."""
    yield from _aliases(shelf, number)
    for lease in leases:
        if (lease.name, lease.number) == (shelf.name, number) and lease.until > now:
            yield f"{lease} holds it"
    yield from _controllers(shelf, number, shelves)


def _aliases(shelf: Shelf, number: int) -> Iterator[str]:
    for alias in shelf.aliases.names():
        try:
            if shelf.aliases.read(alias).number == number:
                yield f"alias {alias} points to it"
        except CorruptRecord as error:
            yield f"{error}, so it may point to it; a move of {alias} with --force repairs it"


def _controllers(shelf: Shelf, number: int, shelves: Iterable[Shelf]) -> Iterator[str]:
    digest = shelf.digest(number)
    if digest is None:
        return  # nothing can be bound to what has no digest any more
    if any(shelf.digest(twin) == digest for twin in shelf.numbers() if twin != number):
        return  # bound by digest: the other number serves them as well
    for other in shelves:
        for found in other.numbers():
            if _bound(other, found, digest):
                yield f"controller {other.name}@{found} is bound to it"


def _bound(shelf: Shelf, number: int, digest: str) -> bool:
    try:
        # Most manifests do not even mention it, and need not be parsed.
        if digest.encode() not in shelf.manifest(number):
            return False
        task = shelf.version(number).manifest.task
    except StoreError:
        return False  # damaged, so it is served to no one; and gc frees nothing until that is settled
    return task is not None and task.parent.digest == digest
