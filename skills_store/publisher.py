"""Publishing: a version enters a store completely or not at all.

A publish writes and syncs its blobs first and its record last. The record makes the version exist,
so opening a store needs no repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from skills_store import admission
from skills_store.disk import index, records
from skills_store.disk.blobs import describe
from skills_store.disk.records import Record
from skills_store.disk.skill_versions import SkillVersions
from skills_store.errors import BundledVersion, GateRefusal, NumberConflict
from skills_store.manifest import Blob, Manifest
from skills_store.reader import StoreReader
from skills_store.version import Version

WriteCallback = Callable[[str, int], None]  # name and bytes of a file that was written


def _ignore_progress(file: str, size: int) -> None:
    pass


class StorePublisher(StoreReader):
    """Adds versions and signatures to a store."""

    def prepare(self, name: str, kind: str) -> None:
        """Make the store if there is none: what would refuse a version of `name` after its training
        is raised before it. WrongKind as `check_kind`, FailedWrite where nothing can be written."""
        self.check_kind(name, kind)
        with self._storage.locks.hold_shared(f"{name} cannot be published"):
            pass

    def publish(self, manifest: Manifest, files: Mapping[str, bytes]) -> Version:
        """All or nothing: gate, blobs, manifest, and only then the record. Returns what `resolve`
        will return.
        """
        admission.admit(manifest, files, self._find_parent(manifest))
        self.check_kind(manifest.name, manifest.kind)
        data, published = _encode(manifest, files)
        self._copy_bundled_parent(manifest)
        with self._write_version(published, data, files) as skill:
            return _add_to_index(skill, _take_number(skill, describe(data), None), published)

    def adopt(
        self,
        data: bytes,
        files: Mapping[str, bytes],
        original: Version | None = None,
        on_write: WriteCallback = _ignore_progress,
    ) -> Version:
        """Publish a version from elsewhere: the manifest's exact bytes, so its digest stays,
        through the same gate.

        It gets the number and date of `original`, or NumberConflict is raised; without one, the
        next number.
        """
        manifest = admission.parse_foreign(data)
        if {file: describe(content) for file, content in files.items()} != manifest.files:
            raise GateRefusal(
                manifest.name, ["its files are not those that its manifest was published with"]
            )
        admission.admit(manifest, files, self._find_parent(manifest))
        self.check_kind(manifest.name, manifest.kind)
        self._copy_bundled_parent(manifest)
        with self._write_version(manifest, data, files, on_write) as skill:
            try:
                return _add_to_index(skill, _take_number(skill, describe(data), original), manifest)
            # Another copy was faster: accepted if it has the same bytes.
            except FileExistsError:
                assert original is not None
                self.find_same_number(original)
                return skill.load_live(original.number)

    def find_same_number(
        self, original: Version, elsewhere: str = "the other store"
    ) -> Version | None:
        """The version with the number of `original` here, None if that is free. Raises
        NumberConflict if the digests differ.
        """
        skill = self._storage.refresh_skill(original.name)
        if original.number not in (*skill.list_all_numbers(), *skill.list_deleted()):
            return None
        existing = skill.load_live(original.number)
        if existing.digest != original.digest:
            raise NumberConflict(
                existing.ref, existing.digest, self.location, original.digest, elsewhere
            )
        return existing

    def add_signature(self, version: Version, envelope: bytes) -> None:
        """Store an envelope beside the records of `version`, once. It is not verified here."""
        self._check_own(version, f"{version.ref} is not signed")
        with self._storage.locks.hold_shared(f"{version.ref} is not signed"):
            self.signatures(version.name).add(version.digest, envelope)

    @contextmanager
    def _write_version(
        self,
        manifest: Manifest,
        data: bytes,
        files: Mapping[str, bytes],
        on_write: WriteCallback = _ignore_progress,
    ) -> Iterator[SkillVersions]:
        """Write all but the record, which the caller creates under the same lock, so that gc keeps
        the blobs.
        """
        with self._storage.locks.hold_shared(f"{manifest.name} is not published"):
            self._find_parent(manifest)  # again: before the lock it could be deleted
            for file, content in files.items():
                self._storage.write_blob(content)
                on_write(file, len(content))
            self._storage.write_blob(data)
            self._storage.blobs.sync()
            yield self._add_bundled(self._storage.refresh_skill(manifest.name))

    def _check_own(self, version: Version, failure: str) -> None:
        if self._bundled is not None and self.is_bundled(version):
            pull = f"skills pull {version.ref} --from {self._bundled.location}"
            remedy = f"`{pull}` copies it into {self.location}"
            raise BundledVersion(
                failure, f"{version.ref} comes with the project and is read-only; {remedy}"
            )

    def _copy_bundled_parent(self, manifest: Manifest) -> None:
        """Copy a controller's bundled parent here, so that the store is complete without the
        bundled libraries.
        """
        if manifest.task is None or self._bundled is None:
            return
        parent = self.parent(manifest)
        if self.is_bundled(parent):
            files = {file: self.read(parent, file) for file in parent.manifest.files}
            taken = self._storage.skill(parent.name).list_all_numbers()
            self.adopt(
                self.manifest_bytes(parent), files, None if parent.number in taken else parent
            )

    def _find_parent(self, manifest: Manifest) -> Manifest | None:
        return self.parent(manifest).manifest if manifest.task else None


def pin(manifest: Manifest, files: Mapping[str, bytes]) -> str:
    """`name@sha256:...` of the version that publishing them would make. Raises GateRefusal if they
    cannot be written as JSON.
    """
    return f"{manifest.name}@{describe(_encode(manifest, files)[0]).digest}"


def _encode(manifest: Manifest, files: Mapping[str, bytes]) -> tuple[bytes, Manifest]:
    """A manifest's published bytes, and the manifest parsed from them."""
    blobs = {file: describe(data) for file, data in files.items()}
    return admission.encode_canonical(manifest.model_copy(update={"files": blobs}))


def _take_number(skill: SkillVersions, manifest: Blob, original: Version | None) -> Record:
    """The number of `original`, or FileExistsError; without one, the next."""
    if original is None:
        aliased = [move.number for move in skill.aliases.read_intact()]
        bundled = skill.base.list_all_numbers() if skill.base else ()
        reserved = (*aliased, *bundled, *skill.list_deleted())
        return records.commit(skill.records, skill.create, skill.name, manifest, reserved)
    return records.commit_at(
        skill.records,
        skill.create,
        skill.name,
        original.number,
        manifest,
        created=original.created,
    )


def _add_to_index(skill: SkillVersions, record: Record, manifest: Manifest) -> Version:
    version = Version(skill.name, record.number, record.manifest.digest, record.created, manifest)
    index.append(skill, version)
    return version
