"""Reading a store: resolves references, lists versions, reads their bytes. Takes no lock and writes
nothing.

A store may therefore be mounted read-only. With `bundled`, the versions of that folder are read as
if they were in the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from skills_store import reference, verify
from skills_store.disk import history, index
from skills_store.disk.alias_move import AliasMove, is_protected
from skills_store.disk.leases import Lease
from skills_store.disk.signatures import Signatures
from skills_store.disk.skill_versions import SkillVersions
from skills_store.disk.store_folder import is_store
from skills_store.disk.tombstones import Tombstone
from skills_store.errors import (
    CorruptStore,
    NotAStore,
    UnknownFile,
    UnknownParent,
    UnknownSkill,
    UnknownVersion,
    WrongKind,
)
from skills_store.manifest import Manifest
from skills_store.remote.origin import Origin
from skills_store.storage import open_storage
from skills_store.version import Fault, Summary, Survey, Version

logger = logging.getLogger("skills_store")


def _now() -> datetime:
    return datetime.now(UTC)


class StoreReader:
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
        self._was_store = origin is None and is_store(self.root)
        self.location = self._storage.location

    def resolve(self, ref: str) -> Version:
        """The current version of `name`, `name@latest`, `name@7`, `name@prod`,
        `name@sha256:...`."""
        parsed = reference.parse(ref)
        skill = self._find_skill(parsed.name)
        try:
            return skill.select(parsed.selector)
        except UnknownVersion:
            # A digest means the same bytes everywhere, even if the store's own numbers hide the
            # bundled ones.
            if parsed.is_digest and self._bundled is not None:
                with suppress(UnknownVersion):
                    return self._bundled.skill(parsed.name).select(parsed.selector)
            raise

    def find_own(self, name: str, digest: str) -> Version | None:
        """The version with this digest in the store itself, even if a bundled one has it, too."""
        try:
            return self._storage.refresh_skill(name).select(digest)
        except (UnknownSkill, UnknownVersion):
            return None

    def check_kind(self, name: str, kind: str) -> None:
        """Raises WrongKind if the versions of `name` have another kind: `latest` would be a library
        in one request and a controller in the next.

        A latest version that cannot be read is not checked."""
        try:
            latest = self._find_skill(name).select(reference.LATEST)
        except (UnknownSkill, UnknownVersion, CorruptStore, OSError):
            return
        if latest.manifest.kind != kind:
            raise WrongKind(latest.ref, latest.manifest.kind, kind, "choose another name")

    def read(self, version: Version, file: str) -> bytes:
        """The published bytes, checked again: CorruptBlob if one bit differs."""
        if file not in version.manifest.files:
            raise UnknownFile(file, version.manifest.files, version.ref)
        storage = self._bundled if self._bundled and self.is_bundled(version) else self._storage
        return storage.blobs.read(version.manifest.files[file], f"{file} of {version.ref}")

    def manifest_bytes(self, version: Version) -> bytes:
        """The published manifest, whose digest is the version's."""
        if self._bundled and self.is_bundled(version):
            return self._bundled.skill(version.name).read_manifest(version.number)
        return self._find_skill(version.name).read_manifest(version.number)

    def signatures(self, name: str) -> Signatures:
        """The signed envelopes of versions of `name`, beside its records; no digest covers them."""
        return Signatures(
            self._storage.refresh_skill(name).directory / "signatures", self._storage.create
        )

    def parent(self, manifest: Manifest) -> Version:
        """The version whose digest a controller is bound to, under any number."""
        if manifest.task is None:
            raise UnknownParent(manifest.name, (), "a manifest without a task")
        bound = manifest.task.parent
        try:
            return self.resolve(f"{bound.name}@{bound.digest}")
        except (UnknownSkill, UnknownVersion) as error:
            raise UnknownParent(
                f"{bound.name}@{bound.digest}", error.exists, self.location
            ) from error

    def names(self) -> tuple[str, ...]:
        """Skills with at least one version."""
        skills = self._storage.list_skills()
        if self._bundled is not None:
            skills = skills + self._bundled.list_skills()
        return tuple(sorted({skill.name for skill in skills if skill.numbers()}))

    def list_bundled(self, name: str) -> frozenset[int]:
        """Numbers of this skill that are bundled versions."""
        skill = self._find_skill(name)
        numbers = skill.base.numbers() if skill.base else ()
        return frozenset(number for number in numbers if skill.is_in_base(number))

    def is_bundled(self, version: Version | Summary) -> bool:
        """Whether this version comes with the project, so it cannot be changed, and is not in the
        store itself.
        """
        if self._bundled is None:
            return False
        stored = self._storage.skill(version.name)
        bundled = self._bundled.skill(version.name)
        return bundled.digest(version.number) == version.digest != stored.digest(version.number)

    def survey(self, name: str) -> Survey:
        """Every version, ascending, and the faults of the others. Files are not read."""
        return self._find_skill(name).survey()

    def versions(self, name: str) -> tuple[Version, ...]:
        """Versions that can be served, ascending; damaged ones are logged and skipped."""
        survey = self.survey(name)
        for fault in survey.faults:
            logger.warning("%s", fault.message)
        return survey.versions

    def summaries(self, name: str) -> tuple[tuple[Summary, ...], tuple[Fault, ...]]:
        """Summaries for a listing, fast for any number of versions: only manifests without an index
        entry are read.
        """
        skill = self._find_skill(name)
        summaries, faults = index.summaries(replace(skill, base=None))
        if skill.base is None:
            return summaries, faults
        bundled, damaged = index.summaries(skill.base)
        numbers = self.list_bundled(name)
        added = [summary for summary in bundled if summary.number in numbers]
        merged = sorted((*summaries, *added), key=lambda summary: summary.number)
        return tuple(merged), faults + damaged

    def aliases(self, name: str) -> dict[str, int]:
        """Aliases that were set by hand; `latest` is derived and not among them."""
        return {move.alias: move.number for move in self._find_skill(name).aliases.read_intact()}

    def list_protected(self, name: str) -> frozenset[str]:
        """The protected ones of `aliases`."""
        return frozenset(
            move.alias
            for move in self._find_skill(name).aliases.read_intact()
            if is_protected(move)
        )

    def latest(self, name: str) -> int:
        """The highest number that is not deleted: derived, so it is never behind a publish."""
        return self._find_skill(name).latest()

    def log(self, name: str) -> tuple[AliasMove | Tombstone, ...]:
        """Every move of every alias and every deletion, oldest first; by revision if a clock was
        set back.
        """
        skill = self._find_skill(name)
        return history.merge_events(skill.aliases.history(), skill.read_tombstones())

    def verify(self, ref: str | None = None) -> tuple[Fault, ...]:
        """Read and hash everything, or all of one version. Empty means that every byte is as
        published.

        With an origin, all files are read from it again, and the cache must have no others. Bundled
        versions are read only if `ref` is one.
        """
        if ref is not None and self._bundled is not None and self._means_bundled(ref):
            return verify.find_faults(self._bundled, ref)
        return verify.find_faults(self._storage, ref)

    def leases(self) -> tuple[Lease, ...]:
        """Unexpired leases, by expiry time."""
        now = self._clock()
        return tuple(
            sorted(
                (x for x in self._storage.leases.read_all() if x.until > now),
                key=lambda lease: lease.until,
            )
        )

    def _find_skill(self, name: str) -> SkillVersions:
        """A skill's own and bundled versions. Raises UnknownSkill if it never had any."""
        # or a bundled version would replace the store's own
        if self._was_store and not is_store(self.root):
            raise NotAStore(self.location, "its layout.json is gone since it was opened")
        skill = self._add_bundled(self._storage.refresh_skill(name))
        if not skill.exists():
            raise UnknownSkill(name, self.names(), self.location)
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
