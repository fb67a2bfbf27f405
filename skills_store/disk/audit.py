"""Everything of one skill, read and hashed: records and their chain, manifests, files, aliases, tombstones."""

from __future__ import annotations

from collections.abc import Iterator

from skills_store.disk import records, tombstones
from skills_store.disk.blobs import describe
from skills_store.disk.shelf import Shelf
from skills_store.errors import CorruptRecord, StoreError
from skills_store.version import Fault, Version, fault


def whole(shelf: Shelf) -> Iterator[Fault]:
    """What is not as it was published; nothing, if all is."""
    survey = shelf.survey()
    yield from survey.faults
    yield from _chain(shelf)
    yield from _tombstones(shelf)
    for version in survey.versions:
        yield from files(shelf, version)
    for alias in shelf.aliases.names():
        try:
            shelf.by_alias(alias)
        except StoreError as error:
            yield fault(f"{shelf.name}@{alias}", error)


def files(shelf: Shelf, version: Version) -> Iterator[Fault]:
    for file, blob in version.manifest.files.items():
        try:
            shelf.blobs.read(blob, f"{file} of {version.ref}")
        except StoreError as error:
            yield fault(version.ref, error)


def _chain(shelf: Shelf) -> Iterator[Fault]:
    """Each record has the digest of the one before it."""
    for number in shelf.taken():
        try:
            record = shelf.record(number)
        except CorruptRecord:
            continue  # the survey has it
        before = f"{shelf.name}@{number - 1}"
        try:
            found = describe(records.raw(shelf.records, shelf.name, number - 1)).digest if record.prev else None
            if found != record.prev:
                raise CorruptRecord(before, "its record is not the one that was published")
        except CorruptRecord as error:
            yield fault(before, error)


def _tombstones(shelf: Shelf) -> Iterator[Fault]:
    for number in shelf.deleted():
        try:
            tombstones.read(shelf.records, shelf.name, number)
        except CorruptRecord as error:
            yield fault(f"{shelf.name}@{number}", error)
