"""All versions of one skill. Reads records and manifests, and resolves selectors; publishes
nothing.

`base` may hold the bundled versions of the same name. They are read as if they were the skill's
own, unless the skill has other bytes under one of their numbers. Audits and sweeps use no base.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    format_ranges,
)
from skills_store.manifest import SCHEMA_VERSION, Manifest
from skills_store.reference import LATEST
from skills_store.version import Survey, Version, make_fault

logger = logging.getLogger("skills_store")


@dataclass(frozen=True)
class SkillVersions:
    name: str
    directory: Path  # skills/<name>
    blobs: Blobs
    create: Create
    base: SkillVersions | None = None

    @property
    def records(self) -> Path:
        return self.directory / "v"

    @property
    def aliases(self) -> Aliases:
        return Aliases(self.name, self.directory, self.create)

    def list_all_numbers(self) -> tuple[int, ...]:
        """Every number that ever was a version, ascending."""
        return records.list_taken(self.records)

    def list_deleted(self) -> tuple[int, ...]:
        return tuple(sorted(records.list_numbers(self.records)[1]))

    def numbers(self) -> tuple[int, ...]:
        """Numbers that are not deleted, ascending."""
        taken, deleted = records.list_numbers(self.records)
        numbers = [number for number in taken if number not in deleted]
        if self.base is not None:
            numbers = sorted({*numbers, *self.base.numbers()}.difference(deleted))
        return tuple(numbers)

    def exists(self) -> bool:
        """Whether it ever had a version."""
        return records.has_records(self.records) or (self.base is not None and self.base.exists())

    def add_base(self, base: SkillVersions) -> SkillVersions:
        """These versions with those of `base`; without it if a number has other bytes in it."""
        for number in base.numbers():
            if self.digest(number) not in (None, base.digest(number)):
                return self
        return replace(self, base=base)

    def is_in_base(self, number: int) -> bool:
        if self.base is None or not records.record_path(self.base.records, number).exists():
            return False
        own_files = (
            records.record_path(self.records, number),
            tombstones.path(self.records, number),
        )
        return not any(path.exists() for path in own_files)

    def latest(self) -> int:
        if not (numbers := self.numbers()):
            raise UnknownVersion(LATEST, (), self.name)
        return numbers[-1]

    def load_live(self, number: int) -> Version:
        """Raises StoreError unless record and manifest are as published. Files are checked when
        they are read.
        """
        self.find_number(number)
        return self.load(number)

    def find_number(self, selector: int | str) -> int:
        """The number of the version with this number or digest, whether or not it can be served."""
        if isinstance(selector, str):
            return self._find_digest(selector)
        holder = self._locate(selector)
        if tombstones.path(holder.records, selector).exists():
            raise DeletedVersion(
                str(selector), self.list_choices(), self.name, self._describe_deletion(selector)
            )
        if not records.record_path(holder.records, selector).exists():
            raise UnknownVersion(str(selector), self.list_choices(), self.name)
        return selector

    def select(self, selector: int | str) -> Version:
        if isinstance(selector, int):
            return self.load_live(selector)
        if selector == LATEST:
            # No silent fallback to an older version: a damaged latest version is refused.
            return self.load(self.latest())
        return (
            self.load(self._find_digest(selector))
            if selector.startswith("sha256:")
            else self.load_by_alias(selector)
        )

    def load_by_alias(self, alias: str) -> Version:
        move = self.aliases.find(alias)
        if move is None:
            raise UnknownAlias(alias, (LATEST, *self.aliases.list_names()), self.name)
        try:
            version = self.load_live(move.number)
        except DeletedVersion:
            if self.aliases.read(alias) == move:
                raise
            # The alias moved after it was read, and then the version was deleted.
            return self.load_by_alias(alias)
        if version.digest != move.digest:
            raise CorruptRecord(
                f"{self.name}@{alias}", f"{version.ref} is not the version it was pointed at"
            )
        return version

    def read_tombstones(self) -> Iterator[Tombstone]:
        """Every intact tombstone; damaged ones are logged and skipped."""
        for number in self.list_deleted():
            try:
                yield tombstones.read(self.records, self.name, number)
            except CorruptRecord as error:
                logger.warning("%s", error)

    def read_record(self, number: int) -> Record:
        return records.read(self._locate(number).records, self.name, number)

    def read_manifest(self, number: int) -> bytes:
        """The published bytes, not parsed."""
        blob = self.read_record(number).manifest
        return self._locate(number).blobs.read(blob, f"the manifest of {self.name}@{number}")

    def digest(self, number: int) -> str | None:
        """The manifest's digest in the record; None if that cannot be read."""
        try:
            return self.read_record(number).manifest.digest
        except CorruptRecord:
            return None

    def list_needed(self, number: int) -> frozenset[str]:
        """Digests of all blobs of the version, which may be deleted."""
        version = self.load(number)
        return frozenset(
            (version.digest, *(blob.digest for blob in version.manifest.files.values()))
        )

    def is_swept(self, number: int) -> bool:
        """Whether the manifest of a deleted version is gone: gc has then removed its files, too."""
        return not self.blobs.path(self.read_record(number).manifest).exists()

    def survey(self) -> Survey:
        versions = []
        faults = []
        for number in self.numbers():
            try:
                versions.append(self.load(number))
            except StoreError as error:
                faults.append(make_fault(f"{self.name}@{number}", error))
        return Survey(tuple(versions), tuple(faults))

    def list_choices(self) -> tuple[str, ...]:
        """Selectors that exist, for messages."""
        return (
            *format_ranges(self.numbers()),
            *(f"{m.alias}={m.number}" for m in self.aliases.read_intact()),
        )

    def load(self, number: int) -> Version:
        """The version with this number, deleted or not."""
        ref = f"{self.name}@{number}"
        record = self.read_record(number)
        data = self._locate(number).blobs.read(record.manifest, f"the manifest of {ref}")
        try:
            manifest = Manifest.model_validate_json(data)
        except ValidationError as error:  # the bytes are right, so a later program wrote them
            raise UnsupportedSchema(ref, _describe_mismatch(error)) from error
        if manifest.name != self.name:
            raise CorruptRecord(ref, f"its manifest is that of {manifest.name!r}")
        return Version(self.name, number, record.manifest.digest, record.created, manifest)

    def _locate(self, number: int) -> SkillVersions:
        """The versions that contain `number`: these, or those of the base."""
        return self.base if self.base is not None and self.is_in_base(number) else self

    def _find_digest(self, digest: str) -> int:
        # Ascending: a digest published twice means its first number until that is deleted.
        for number in self.numbers():
            if self.digest(number) == digest:
                return number
        in_base = () if self.base is None else self.base.list_deleted()
        for number in (*self.list_deleted(), *in_base):
            if self.digest(number) == digest:
                raise DeletedVersion(
                    digest, self.list_choices(), self.name, self._describe_deletion(number)
                )
        raise UnknownVersion(digest, self.list_choices(), self.name)

    def _describe_deletion(self, number: int) -> str:
        try:
            return str(tombstones.read(self._locate(number).records, self.name, number))
        except CorruptRecord:
            return "(its tombstone cannot be read)"


def _describe_mismatch(error: ValidationError) -> str:
    wrong = {fault["loc"]: fault["input"] for fault in error.errors(include_url=False)}
    if (schema := wrong.get(("schema_version",))) is not None:
        return f"its manifest is of schema {schema}; this program reads {SCHEMA_VERSION}"
    return f"its manifest has {error.error_count()} fields unknown here"
