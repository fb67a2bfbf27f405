"""All versions of one skill. Reads records and manifests, and answers what a selector means; publishes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from skills_store.disk import records, tombstones
from skills_store.disk.aliases import Aliases
from skills_store.disk.blobs import Blobs
from skills_store.disk.durable import Create
from skills_store.disk.records import Record
from skills_store.disk.tombstones import Tombstone
from skills_store.errors import (
    CorruptRecord,
    DeletedVersion,
    StoreError,
    UnknownAlias,
    UnknownVersion,
    UnsupportedSchema,
    runs,
)
from skills_store.manifest import SCHEMA_VERSION, Manifest
from skills_store.reference import LATEST
from skills_store.version import Survey, Version, fault

logger = logging.getLogger("skills_store")


@dataclass(frozen=True)
class Shelf:
    name: str
    directory: Path  # skills/<name>
    blobs: Blobs
    create: Create

    @property
    def records(self) -> Path:
        return self.directory / "v"

    @property
    def aliases(self) -> Aliases:
        return Aliases(self.name, self.directory, self.create)

    def taken(self) -> tuple[int, ...]:
        """Every number that ever was a version, ascending."""
        return records.numbers(self.records)

    def deleted(self) -> tuple[int, ...]:
        return tuple(sorted(records.listed(self.records)[1]))

    def numbers(self) -> tuple[int, ...]:
        """Those that are not deleted."""
        taken, deleted = records.listed(self.records)
        return tuple(number for number in taken if number not in deleted)

    def exists(self) -> bool:
        """Whether it ever had a version."""
        return records.exist(self.records)

    def latest(self) -> int:
        if not (numbers := self.numbers()):
            raise UnknownVersion(LATEST, (), self.name)
        return numbers[-1]

    def version(self, number: int) -> Version:
        """Refused unless record and manifest are as published. The files are checked when they are read."""
        self.number(number)
        return self.load(number)

    def number(self, selector: int | str) -> int:
        """The version that a number or a digest means, whether or not it can be served."""
        if isinstance(selector, str):
            return self._number_of(selector)
        if tombstones.path(self.records, selector).exists():
            raise DeletedVersion(str(selector), self.choices(), self.name, self._told(selector))
        if not records.path(self.records, selector).exists():
            raise UnknownVersion(str(selector), self.choices(), self.name)
        return selector

    def select(self, selector: int | str) -> Version:
        if isinstance(selector, int):
            return self.version(selector)
        if selector == LATEST:
            # Never a silent fall back to an older one: a damaged latest version is refused by name.
            return self.load(self.latest())
        return self.load(self._number_of(selector)) if selector.startswith("sha256:") else self.by_alias(selector)

    def by_alias(self, alias: str) -> Version:
        move = self.aliases.find(alias)
        if move is None:
            raise UnknownAlias(alias, (LATEST, *self.aliases.names()), self.name)
        try:
            version = self.version(move.number)
        except DeletedVersion:
            if self.aliases.read(alias) == move:
                raise
            return self.by_alias(alias)  # it has moved on since it was read, and only then was the version deleted
        if version.digest != move.digest:
            raise CorruptRecord(f"{self.name}@{alias}", f"{version.ref} is not the version it was pointed at")
        return version

    def tombstones(self) -> Iterator[Tombstone]:
        """Every intact one; a damaged one is reported and passed over."""
        for number in self.deleted():
            try:
                yield tombstones.read(self.records, self.name, number)
            except CorruptRecord as error:
                logger.warning("%s", error)

    def record(self, number: int) -> Record:
        return records.read(self.records, self.name, number)

    def manifest(self, number: int) -> bytes:
        """As published, and not yet understood."""
        return self.blobs.read(self.record(number).manifest, f"the manifest of {self.name}@{number}")

    def digest(self, number: int) -> str | None:
        """Of the manifest, as the record has it; None where that cannot be read."""
        try:
            return self.record(number).manifest.digest
        except CorruptRecord:
            return None

    def needs(self, number: int) -> frozenset[str]:
        """Digests of all that the version is made of; it may be deleted."""
        version = self.load(number)
        return frozenset((version.digest, *(blob.digest for blob in version.manifest.files.values())))

    def swept(self, number: int) -> bool:
        """Whether the manifest of a deleted version is gone: then gc had its files, too."""
        return not self.blobs.path(self.record(number).manifest).exists()

    def survey(self) -> Survey:
        versions, faults = [], []
        for number in self.numbers():
            try:
                versions.append(self.load(number))
            except StoreError as error:
                faults.append(fault(f"{self.name}@{number}", error))
        return Survey(tuple(versions), tuple(faults))

    def choices(self) -> tuple[str, ...]:
        """What a reference could have said instead."""
        return (*runs(self.numbers()), *(f"{m.alias}={m.number}" for m in self.aliases.readable()))

    def load(self, number: int) -> Version:
        """By its number, deleted or not."""
        ref = f"{self.name}@{number}"
        record = self.record(number)
        data = self.blobs.read(record.manifest, f"the manifest of {ref}")
        try:
            manifest = Manifest.model_validate_json(data)
        except ValidationError as error:  # the right bytes, so of a later program
            raise UnsupportedSchema(ref, _foreign(error)) from error
        if manifest.name != self.name:
            raise CorruptRecord(ref, f"its manifest is that of {manifest.name!r}")
        return Version(self.name, number, record.manifest.digest, record.created, manifest)

    def _number_of(self, digest: str) -> int:
        # Ascending: a digest published twice keeps meaning its first number, until that one is deleted.
        for number in self.numbers():
            if self.digest(number) == digest:
                return number
        for number in self.deleted():
            if self.digest(number) == digest:
                raise DeletedVersion(digest, self.choices(), self.name, self._told(number))
        raise UnknownVersion(digest, self.choices(), self.name)

    def _told(self, number: int) -> str:
        try:
            return str(tombstones.read(self.records, self.name, number))
        except CorruptRecord:
            return "(its tombstone cannot be read)"


def _foreign(error: ValidationError) -> str:
    wrong = {found["loc"]: found["input"] for found in error.errors(include_url=False)}
    if (schema := wrong.get(("schema_version",))) is not None:
        return f"its manifest is of schema {schema}; this program knows {SCHEMA_VERSION}"
    return f"its manifest has {error.error_count()} fields unknown here"
