"""The skill store: versions that never change, on a disk or in a bucket. Serves nothing unverified.

A publish writes and syncs its blobs first and its record last, so a version is there whole or not at all, without any
repair on opening. Reading takes no lock and writes nothing: a store may be mounted read-only. How it lies on the disk is
in docs/store.md.

With an origin, all of this is the cache of a bucket of the same layout: what makes something exist is created there first.
With `bundled`, the versions of that folder are read as if they were in here, and never written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from skills_store import admission, places, reference
from skills_store.admission import regression
from skills_store.disk import garbage, index, records, store_folder, tombstones
from skills_store.disk.aliases import plan_rollback
from skills_store.disk.blobs import describe
from skills_store.disk.garbage import GRACE, Garbage
from skills_store.disk.leases import Lease, check_span
from skills_store.disk.records import Record
from skills_store.disk.references import list_references
from skills_store.disk.skill_versions import SkillVersions
from skills_store.disk.tombstones import Tombstone
from skills_store.errors import (
    BundledVersion,
    GateRefusal,
    InvalidReference,
    NumberConflict,
    StoreError,
    UnknownAlias,
    VersionInUse,
)
from skills_store.manifest import Blob, Manifest
from skills_store.places import BUNDLED
from skills_store.reader import StoreReader
from skills_store.version import Fault, Survey, Version

__all__ = ["BUNDLED", "Fault", "Store", "Survey", "Version", "default_root"]

logger = logging.getLogger("skills_store")

WriteCallback = Callable[[str, int], None]  # of a file that is in the store now, its name and bytes


def default_root() -> Path:
    """$REPERTOIRE_STORE, or what skills_store/places.py has for it."""
    return places.store()


def _ignore_progress(file: str, size: int) -> None:
    pass


class Store(StoreReader):
    """Stateless: every call reads the disk, so any number of processes may share one root."""

    # Adding.

    def publish(self, manifest: Manifest, files: Mapping[str, bytes]) -> Version:
        """All or nothing: gate, blobs, manifest, and only then the record. Returns what `resolve` will return."""
        admission.admit(manifest, files, self._find_parent(manifest))
        data, published = _encode(manifest, files)
        self._copy_bundled_parent(manifest)
        with self._write_version(published, data, files) as skill:
            return _add_to_index(skill, _take_number(skill, describe(data), None), published)

    def adopt(
        self,
        data: bytes,
        files: Mapping[str, bytes],
        original: Version | None = None,
        kept: WriteCallback = _ignore_progress,
    ) -> Version:
        """What was published elsewhere: the manifest's very bytes, so its digest stays, through the same gate.

        It takes the number and date of `original`, or NumberConflict; without one, the next number.
        """
        manifest = admission.parse_foreign(data)
        if {file: describe(content) for file, content in files.items()} != manifest.files:
            raise GateRefusal(manifest.name, ["its files are not those that its manifest was published with"])
        admission.admit(manifest, files, self._find_parent(manifest))
        self._copy_bundled_parent(manifest)
        with self._write_version(manifest, data, files, kept) as skill:
            try:
                return _add_to_index(skill, _take_number(skill, describe(data), original), manifest)
            except FileExistsError:  # another copy was faster: well and good if it was of the same bytes
                assert original is not None
                self.find_same_number(original)
                return skill.load_live(original.number)

    def find_same_number(self, original: Version, elsewhere: str = "the other store") -> Version | None:
        """The version that has the number of `original` here, None where it is free, NumberConflict if not the same."""
        skill = self._storage.refresh_skill(original.name)
        if original.number not in skill.list_all_numbers():
            return None
        here = skill.load_live(original.number)
        if here.digest != original.digest:
            raise NumberConflict(here.ref, here.digest, self.where, original.digest, elsewhere)
        return here

    def add_signature(self, version: Version, envelope: bytes) -> None:
        """Keep an envelope beside the records of `version`, once. It is not verified here."""
        self._check_own(version, f"{version.ref} is not signed")
        with self._storage.locks.hold_shared(f"{version.ref} is not signed"):
            self.signatures(version.name).add(version.digest, envelope)

    def alias(self, name: str, alias: str, number: int, why: str = "", *, force: bool = False) -> Version:
        """Point `alias` at a version that can be served. The move is logged, and undone by another.

        A protected alias, as `prod` is, moves to no version whose card is worse than the one it points at, unless
        forced: Regression. One whose last move cannot be read may be protected: only a forced move repairs it.
        """
        reference.check_alias(alias)
        skill = self._find_skill(name)
        if skill.is_in_base(number):
            self._check_own(skill.load(number), f"{name}@{alias} is not moved")
        with self._storage.locks.hold_shared(f"{name}@{alias} is not moved"):
            return skill.aliases.move(
                alias, regression.plan_move(alias, number, skill.load_live, force=force), why, repair=force
            )

    def rollback(self, name: str, alias: str, why: str = "") -> Version:
        """Back to what `alias` meant before and is still there; again, and it goes further back. No guard is asked.

        A logged move like any other, which says what it undoes. Refused where there is nothing to return to.
        """
        skill = self._find_aliased(name, alias)
        with self._storage.locks.hold_shared(f"{name}@{alias} is not moved"):
            return skill.aliases.move(alias, plan_rollback(skill.aliases, alias, skill.load_live), why)

    def protect(self, name: str, alias: str, why: str = "", *, on: bool = True) -> Version:
        """From now on `alias` moves to nothing worse unless forced, or, with `on` false, wherever it is told to."""
        skill = self._find_aliased(name, alias)
        with self._storage.locks.hold_shared(f"{name}@{alias} is left as it was"):
            return skill.aliases.move(alias, regression.plan_protection(skill.load_live, on=on), why)

    def lease(self, ref: str, seconds: float, why: str = "") -> Lease:
        """Keep a version from being deleted for so long, or until the lease is released."""
        check_span("a lease", seconds, least=1)
        self._storage.check_deletable(f"{ref} is not leased")
        found = self.resolve(ref)  # what is not there is refused before anything is written
        self._check_own(found, f"{ref} is not leased")
        with self._storage.locks.hold_shared(f"{ref} is not leased"):
            return self._storage.leases.grant(self.resolve(ref), seconds, why, self._clock())

    def release(self, lease: str) -> None:
        """End a lease early, by its id or a beginning of it that no other has."""
        found = self._storage.leases.find(lease)
        with self._storage.locks.hold_shared(f"lease {found} is not released"):
            self._storage.leases.release(found)

    def delete(self, ref: str, why: str) -> Tombstone:
        """Delete a version for good; VersionInUse while anything refers to it. Its number is never used again.

        `ref` names it by number or digest: what an alias or `latest` means may change while one types.
        """
        wanted = reference.parse(ref)
        if not wanted.is_pinned:
            raise InvalidReference(ref, "a deletion names its version by number or digest")
        if not why.strip():
            raise StoreError(f"{ref} is not deleted: say why, for the log")
        self._storage.check_deletable(f"{ref} is not deleted")
        skill = self._find_skill(wanted.name)
        number = skill.find_number(wanted.selector)
        if skill.is_in_base(number):
            self._check_own(skill.load(number), f"{ref} is not deleted")
        with self._storage.locks.hold_exclusive(f"{ref} is not deleted"):
            number, now = skill.find_number(wanted.selector), self._clock()
            if held := tuple(
                list_references(skill, number, self._storage.list_skills(), self._storage.leases.read_all(), now)
            ):
                raise VersionInUse(f"{skill.name}@{number}", held)
            return tombstones.commit(
                skill.records, self._storage.create, skill.name, number, skill.digest(number), why, now
            )

    def gc(self, grace: float = GRACE, *, dry_run: bool = False) -> Garbage:
        """Free what nothing has needed for `grace` seconds, and say what.

        UnsafeSweep while a version cannot be read, or the structure shows that something is lost.
        """
        since = self._clock() - timedelta(seconds=check_span("a grace", grace))
        self._storage.check_deletable("nothing is swept")
        blobs, leases = self._storage.blobs, self._storage.leases
        if not store_folder.is_store(self.root):
            store_folder.check(self.root)
            return Garbage()
        if dry_run:
            return garbage.find(self._storage.list_sweepable(), blobs, leases, since)
        with self._storage.locks.hold_exclusive("gc stopped"):
            skills = self._storage.list_sweepable()
            found = garbage.find(skills, blobs, leases, since)
            garbage.sweep(found, skills)
            for skill in filter(SkillVersions.exists, skills):
                index.rewrite(skill)
        return found

    @contextmanager
    def _write_version(
        self, manifest: Manifest, data: bytes, files: Mapping[str, bytes], kept: WriteCallback = _ignore_progress
    ) -> Iterator[SkillVersions]:
        """All but the record, which the caller creates under the same lock, so that gc spares the blobs."""
        with self._storage.locks.hold_shared(f"{manifest.name} is not published"):
            self._find_parent(manifest)  # again: until now it could be deleted
            for file, content in files.items():
                self._storage.write_blob(content)
                kept(file, len(content))
            self._storage.write_blob(data)
            self._storage.blobs.sync()
            yield self._add_bundled(self._storage.refresh_skill(manifest.name))

    def _check_own(self, version: Version, otherwise: str) -> None:
        if self._bundled is not None and self.is_bundled(version):
            remedy = f"`skills pull {version.ref} --from {self._bundled.where}` copies it into {self.where}"
            raise BundledVersion(otherwise, f"{version.ref} comes with the project and is read-only; {remedy}")

    def _copy_bundled_parent(self, manifest: Manifest) -> None:
        """A controller's parent lies in the same store, so that the store stays whole without the bundled libraries."""
        if manifest.task is None or self._bundled is None:
            return
        parent = self.parent(manifest)
        if self.is_bundled(parent):
            files = {file: self.read(parent, file) for file in parent.manifest.files}
            taken = self._storage.skill(parent.name).list_all_numbers()
            self.adopt(self.manifest_bytes(parent), files, None if parent.number in taken else parent)

    def _find_aliased(self, name: str, alias: str) -> SkillVersions:
        skill = self._find_skill(name)
        if alias not in skill.aliases.list_names():
            raise UnknownAlias(alias, skill.aliases.list_names(), name)
        return skill

    def _find_parent(self, manifest: Manifest) -> Manifest | None:
        return self.parent(manifest).manifest if manifest.task else None


def pin(manifest: Manifest, files: Mapping[str, bytes]) -> str:
    """`name@sha256:...` of the version that they will be once published. GateRefusal if they can't be written as JSON."""
    return f"{manifest.name}@{describe(_encode(manifest, files)[0]).digest}"


def _encode(manifest: Manifest, files: Mapping[str, bytes]) -> tuple[bytes, Manifest]:
    """What is published of a manifest: its bytes, and what a reader makes of them."""
    described = {file: describe(data) for file, data in files.items()}
    return admission.encode_canonical(manifest.model_copy(update={"files": described}))


def _take_number(skill: SkillVersions, manifest: Blob, original: Version | None) -> Record:
    """The number of `original`, or FileExistsError; without one, the next."""
    if original is None:
        meant = [move.number for move in skill.aliases.read_intact()]
        bundled = skill.base.list_all_numbers() if skill.base else ()
        return records.commit(skill.records, skill.create, skill.name, manifest, (*meant, *bundled))
    return records.commit_at(skill.records, skill.create, skill.name, original.number, manifest, original.created)


def _add_to_index(skill: SkillVersions, record: Record, manifest: Manifest) -> Version:
    version = Version(skill.name, record.number, record.manifest.digest, record.created, manifest)
    index.append(skill, version)
    return version
