"""All versions of one skill. Reads records and manifests, and answers what a selector means; publishes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from skills_store import records
from skills_store.aliases import Aliases
from skills_store.blobs import Blobs, describe
from skills_store.errors import CorruptRecord, StoreError, UnknownAlias, UnknownVersion, runs
from skills_store.manifest import Manifest
from skills_store.reference import LATEST
from skills_store.version import Fault, Survey, Version, fault


@dataclass(frozen=True)
class Shelf:
    name: str
    directory: Path  # skills/<name>
    blobs: Blobs

    @property
    def records(self) -> Path:
        return self.directory / "v"

    @property
    def aliases(self) -> Aliases:
        return Aliases(self.name, self.directory, self.blobs.staging)

    def numbers(self) -> tuple[int, ...]:
        return records.numbers(self.records)

    def version(self, number: int) -> Version:
        """Refused unless record and manifest are as published. The files are checked when they are read."""
        if number not in self.numbers():
            raise UnknownVersion(str(number), self.choices(), self.name)
        return self._load(number)

    def select(self, selector: int | str) -> Version:
        if isinstance(selector, int):
            return self.version(selector)
        if selector == LATEST:
            # Never a silent fall back to an older one: a damaged latest version is refused by name.
            return self._load(self.numbers()[-1])
        return self._by_digest(selector) if selector.startswith("sha256:") else self._by_alias(selector)

    def survey(self) -> Survey:
        versions, faults = [], []
        for number in self.numbers():
            try:
                versions.append(self._load(number))
            except StoreError as error:
                faults.append(fault(f"{self.name}@{number}", error))
        return Survey(tuple(versions), tuple(faults))

    def choices(self) -> tuple[str, ...]:
        """What a reference could have said instead."""
        return (*runs(self.numbers()), *(f"{m.alias}={m.number}" for m in self.aliases.readable()))

    def verify(self) -> tuple[Fault, ...]:
        """Every record, manifest, file and alias, and the chain of records."""
        survey = self.survey()
        faults = [*survey.faults, *self._broken_chain()]
        for version in survey.versions:
            faults += self.verify_files(version)
        for alias in self.aliases.names():
            try:
                self._by_alias(alias)
            except StoreError as error:
                faults.append(fault(f"{self.name}@{alias}", error))
        return tuple(faults)

    def verify_files(self, version: Version) -> list[Fault]:
        faults = []
        for file, blob in version.manifest.files.items():
            try:
                self.blobs.read(blob, f"{file} of {version.ref}")
            except StoreError as error:
                faults.append(fault(version.ref, error))
        return faults

    def _load(self, number: int) -> Version:
        ref = f"{self.name}@{number}"
        record = records.read(self.records, self.name, number)
        data = self.blobs.read(record.manifest, f"the manifest of {ref}")
        try:
            manifest = Manifest.model_validate_json(data)
        except ValidationError as error:  # the right bytes, so of a later program
            raise CorruptRecord(ref, f"its manifest has {error.error_count()} fields unknown here") from error
        if manifest.name != self.name:
            raise CorruptRecord(ref, f"its manifest is that of {manifest.name!r}")
        return Version(self.name, number, record.manifest.digest, record.created, manifest)

    def _by_digest(self, digest: str) -> Version:
        # Ascending: a digest published twice keeps meaning its first number for ever.
        for number in self.numbers():
            try:
                record = records.read(self.records, self.name, number)
            except CorruptRecord:
                continue
            if record.manifest.digest == digest:
                return self._load(number)
        raise UnknownVersion(digest, self.choices(), self.name)

    def _by_alias(self, alias: str) -> Version:
        if alias not in self.aliases.names():
            raise UnknownAlias(alias, (LATEST, *self.aliases.names()), self.name)
        move = self.aliases.read(alias)
        version = self.version(move.number)
        if version.digest != move.digest:
            raise CorruptRecord(f"{self.name}@{alias}", f"{version.ref} is not the version it was pointed at")
        return version

    def _broken_chain(self) -> list[Fault]:
        faults = []
        for number in self.numbers():
            try:
                record = records.read(self.records, self.name, number)
            except CorruptRecord:
                continue  # the survey has it
            before = f"{self.name}@{number - 1}"
            try:
                found = describe(records.raw(self.records, self.name, number - 1)).digest if record.prev else None
                if found != record.prev:
                    raise CorruptRecord(before, "its record is not the one that was published")
            except CorruptRecord as error:
                faults.append(fault(before, error))
        return faults
