"""Everything of one skill, read and compared: records and their chain, manifests, files, aliases, tombstones; and leases.

What is lost shows by what still speaks of it: the record after it, a move, a tombstone, a lease. The last record and the last
move of an alias are spoken of by nothing else, unless one is by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from skills_store.disk import index, records, tombstones
from skills_store.disk.aliases import AliasMove
from skills_store.disk.blobs import describe
from skills_store.disk.leases import Leases
from skills_store.disk.shelf import Shelf
from skills_store.errors import CorruptRecord, CorruptStore, UnknownVersion
from skills_store.version import Fault, Version, fault


def whole(shelf: Shelf) -> Iterator[Fault]:
    """What is not as it was published; nothing, if all is."""
    yield from _versions(shelf)
    yield from structure(shelf)
    for alias in shelf.aliases.names():
        for error in shelf.aliases.survey(alias)[1].values():
            yield fault(f"{shelf.name}@{alias}", error)
        try:
            shelf.by_alias(alias)
        except (CorruptStore, UnknownVersion) as error:
            yield fault(f"{shelf.name}@{alias}", error)


def structure(shelf: Shelf, settled: frozenset[int] = frozenset()) -> Iterator[Fault]:
    """What is lost or does not fit, as far as that shows without a blob; nothing that is about versions `settled`.

    Nor are moves lost or damaged that later ones followed: nothing relies on what an alias meant once.
    """
    surveys = {alias: shelf.aliases.survey(alias) for alias in shelf.aliases.names()}
    moves = [move for intact, _ in surveys.values() for move in intact]
    for number, error in (*_chain(shelf), *_spoken_of(shelf, moves)):
        if number not in settled:
            yield fault(f"{shelf.name}@{number}", error)
    for alias, (_, broken) in surveys.items():
        newest = shelf.aliases.newest(alias)
        for rev, error in broken.items():
            if rev == newest:
                yield fault(f"{shelf.name}@{alias}", error)


def bound(shelves: Sequence[Shelf]) -> Iterator[Fault]:
    """Each controller's library is there, by the digest that it was trained on."""
    there = {(shelf.name, shelf.digest(number)) for shelf in shelves for number in shelf.numbers()}
    for shelf in shelves:
        for summary in index.summaries(shelf)[0]:
            task = shelf.version(summary.number).manifest.task if summary.kind == "controller" else None
            if task and (task.parent.name, task.parent.digest) not in there:
                lost = f"the library that it is bound to, {task.parent.name}@{task.parent.digest}, is not there"
                yield fault(summary.ref, CorruptRecord(summary.ref, lost))


def files(shelf: Shelf, version: Version) -> Iterator[Fault]:
    for file, blob in version.manifest.files.items():
        try:
            shelf.blobs.read(blob, f"{file} of {version.ref}")
        except CorruptStore as error:
            yield fault(version.ref, error)


def leases(held: Leases, shelf: Callable[[str], Shelf]) -> Iterator[Fault]:
    """Each can be read, and is of a version that was there."""
    for id in held.ids():
        try:
            lease = held.read(id)
            if lease and shelf(lease.name).digest(lease.number) != lease.digest:
                raise CorruptRecord(f"lease {id}", f"{lease.ref} is not the version that it was given for")
        except CorruptRecord as error:
            yield fault(f"lease {id}", error)


def _versions(shelf: Shelf) -> Iterator[Fault]:
    for number in shelf.numbers():
        try:
            version = shelf.load(number)
        except CorruptStore as error:
            yield fault(f"{shelf.name}@{number}", error)
        else:
            yield from files(shelf, version)


Found = Iterator[tuple[int, CorruptRecord]]  # the number of the version that it is about, and what it is


def _chain(shelf: Shelf) -> Found:
    """Each record can be read, and has the digest of the one before it."""
    digests: dict[int, str] = {}
    for number in shelf.taken():
        try:
            raw = records.raw(shelf.records, shelf.name, number)
            digests[number] = describe(raw).digest
            prev = records.parse(raw, shelf.name, number).prev
        except CorruptRecord as error:
            yield number, error
            continue
        if prev is None:
            continue
        try:
            before = digests.get(number - 1) or describe(records.raw(shelf.records, shelf.name, number - 1)).digest
            if before != prev:
                raise CorruptRecord(f"{shelf.name}@{number - 1}", "its record is not the one that was published")
        except CorruptRecord as error:
            yield number - 1, error


def _spoken_of(shelf: Shelf, moves: Iterable[AliasMove]) -> Found:
    """What moves and tombstones say that a version is, its record says, too."""
    said = {(move.number, move.digest): f"move {move.rev} of {move.alias}" for move in moves}
    for number in shelf.deleted():
        try:
            stone = tombstones.read(shelf.records, shelf.name, number)
            said |= {(number, stone.digest): "its tombstone"} if stone.digest else {}
        except CorruptRecord as error:
            yield number, error
    for (number, digest), who in said.items():
        try:
            if shelf.record(number).manifest.digest != digest:
                raise CorruptRecord(f"{shelf.name}@{number}", f"its record is not the one that {who} was made for")
        except CorruptRecord as error:
            yield number, error
