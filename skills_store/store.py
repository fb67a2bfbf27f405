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
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from skills_store import admission, places, reference, verify
from skills_store.admission import regression
from skills_store.disk import garbage, history, index, records, store_folder, tombstones
from skills_store.disk.aliases import AliasMove, is_protected, plan_rollback
from skills_store.disk.blobs import describe
from skills_store.disk.garbage import GRACE, Garbage
from skills_store.disk.leases import Lease, check_span
from skills_store.disk.records import Record
from skills_store.disk.references import list_references
from skills_store.disk.signatures import Signatures
from skills_store.disk.skill_versions import SkillVersions
from skills_store.disk.tombstones import Tombstone
from skills_store.errors import (
    BundledVersion,
    CorruptStore,
    GateRefusal,
    InvalidReference,
    NumberConflict,
    StoreError,
    UnknownAlias,
    UnknownFile,
    UnknownParent,
    UnknownSkill,
    UnknownVersion,
    VersionInUse,
)
from skills_store.manifest import Blob, Manifest
from skills_store.places import BUNDLED
from skills_store.remote.origin import Origin
from skills_store.storage import open_storage
from skills_store.version import Fault, Summary, Survey, Version

__all__ = ["BUNDLED", "Fault", "Store", "Survey", "Version", "default_root"]

logger = logging.getLogger("skills_store")

WriteCallback = Callable[[str, int], None]  # of a file that is in the store now, its name and bytes


def default_root() -> Path:
    """$REPERTOIRE_STORE, or what skills_store/places.py has for it."""
    return places.store()


def _now() -> datetime:
    return datetime.now(UTC)


def _ignore_progress(file: str, size: int) -> None:
    pass


class Store:
    """Stateless: every call reads the disk, so any number of processes may share one root."""

    def __init__(
        self,
        root: Path | str,
        origin: Origin | None = None,
        *,
        bundled: Path | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._storage = open_storage(Path(root), origin)
        self._bundled = None if bundled is None else open_storage(bundled, None)
        self._clock = clock
        self.root = self._storage.root
        self.where = self._storage.where

    # Reading.

    def resolve(self, ref: str) -> Version:
        """The version that `name`, `name@latest`, `name@7`, `name@prod` or `name@sha256:...` means now."""
        wanted = reference.parse(ref)
        skill = self._find_skill(wanted.name)
        try:
            return skill.select(wanted.selector)
        except UnknownVersion:
            # A digest means the same bytes everywhere, also where the store's own numbers hide the bundled ones.
            if wanted.is_digest and self._bundled is not None:
                with suppress(UnknownVersion):
                    return self._bundled.skill(wanted.name).select(wanted.selector)
            raise

    def read(self, version: Version, file: str) -> bytes:
        """The published bytes, checked again: CorruptBlob if one bit differs."""
        if file not in version.manifest.files:
            raise UnknownFile(file, version.manifest.files, version.ref)
        storage = self._bundled if self._bundled and self.is_bundled(version) else self._storage
        return storage.blobs.read(version.manifest.files[file], f"{file} of {version.ref}")

    def manifest_bytes(self, version: Version) -> bytes:
        """What the version's digest is the digest of."""
        if self._bundled and self.is_bundled(version):
            return self._bundled.skill(version.name).read_manifest(version.number)
        return self._find_skill(version.name).read_manifest(version.number)

    def signatures(self, name: str) -> Signatures:
        """The signed envelopes of versions of `name`: beside its records, and in no digest."""
        return Signatures(self._storage.refresh_skill(name).directory / "signatures", self._storage.create)

    def parent(self, manifest: Manifest) -> Version:
        """The version whose digest a controller is bound to, whatever number it has in this store."""
        if manifest.task is None:
            raise UnknownParent(manifest.name, (), "a manifest without a task")
        bound = manifest.task.parent
        try:
            return self.resolve(f"{bound.name}@{bound.digest}")
        except (UnknownSkill, UnknownVersion) as error:
            raise UnknownParent(f"{bound.name}@{bound.digest}", error.exists, self.where) from error

    def names(self) -> tuple[str, ...]:
        """Skills with at least one version."""
        skills = self._storage.list_skills()
        if self._bundled is not None:
            skills = skills + self._bundled.list_skills()
        return tuple(sorted({skill.name for skill in skills if skill.numbers()}))

    def list_bundled(self, name: str) -> frozenset[int]:
        """Numbers of this skill that mean a bundled version."""
        skill = self._find_skill(name)
        numbers = skill.base.numbers() if skill.base else ()
        return frozenset(number for number in numbers if skill.is_in_base(number))

    def is_bundled(self, version: Version | Summary) -> bool:
        """Whether this version comes with the project, so it cannot be changed, and is not in the store itself."""
        if self._bundled is None:
            return False
        own = self._storage.skill(version.name)
        bundled = self._bundled.skill(version.name)
        return bundled.digest(version.number) == version.digest != own.digest(version.number)

    def survey(self, name: str) -> Survey:
        """Every version, ascending, and what is wrong with those that cannot be served. Files are not read."""
        return self._find_skill(name).survey()

    def versions(self, name: str) -> tuple[Version, ...]:
        """Versions that can be served, ascending; a damaged one is reported to the log and passed over."""
        survey = self.survey(name)
        for found in survey.faults:
            logger.warning("%s", found.message)
        return survey.versions

    def summaries(self, name: str) -> tuple[tuple[Summary, ...], tuple[Fault, ...]]:
        """What a listing needs of them, quick however many there are: manifests are read only where they are new."""
        skill = self._find_skill(name)
        found, faults = index.summaries(replace(skill, base=None))
        if skill.base is None:
            return found, faults
        bundled, damaged = index.summaries(skill.base)
        numbers = self.list_bundled(name)
        added = [summary for summary in bundled if summary.number in numbers]
        return tuple(sorted((*found, *added), key=lambda summary: summary.number)), faults + damaged

    def aliases(self, name: str) -> dict[str, int]:
        """Aliases that were set by hand; `latest` is derived and not among them."""
        return {move.alias: move.number for move in self._find_skill(name).aliases.read_intact()}

    def list_protected(self, name: str) -> frozenset[str]:
        """Those of `aliases` that move to nothing worse."""
        return frozenset(move.alias for move in self._find_skill(name).aliases.read_intact() if is_protected(move))

    def latest(self, name: str) -> int:
        """The highest number that is not deleted: derived, so it can never lag behind a publish."""
        return self._find_skill(name).latest()

    def log(self, name: str) -> tuple[AliasMove | Tombstone, ...]:
        """Every move of every alias and every deletion, oldest first; by revision where the clock was set back."""
        skill = self._find_skill(name)
        return history.merge_events(skill.aliases.history(), skill.read_tombstones())

    def verify(self, ref: str | None = None) -> tuple[Fault, ...]:
        """Read and hash everything, or all of one version. Empty means that every byte is as published.

        With an origin its files are all read anew, and the cache must have no others. Bundled versions are read only where
        `ref` means one.
        """
        if ref is not None and self._bundled is not None and self._means_bundled(ref):
            return verify.find_faults(self._bundled, ref)
        return verify.find_faults(self._storage, ref)

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

    def leases(self) -> tuple[Lease, ...]:
        """Those that have not run out, by the time they end."""
        now = self._clock()
        return tuple(
            sorted((x for x in self._storage.leases.read_all() if x.until > now), key=lambda lease: lease.until)
        )

    # Deleting.

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

    def _find_skill(self, name: str) -> SkillVersions:
        """Its own and bundled versions; UnknownSkill where it never had any."""
        skill = self._add_bundled(self._storage.refresh_skill(name))
        if not skill.exists():
            raise UnknownSkill(name, self.names(), self.where)
        return skill

    def _add_bundled(self, skill: SkillVersions) -> SkillVersions:
        if self._bundled is None:
            return skill
        base = self._bundled.skill(skill.name)
        return skill.add_base(base) if base.exists() else skill

    def _means_bundled(self, ref: str) -> bool:
        try:
            return self.is_bundled(self.resolve(ref))
        except CorruptStore:
            return False  # `verify` reports it

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
