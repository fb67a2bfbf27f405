"""The parts of a store: its skills, blobs, locks and leases, on this disk or behind a cache."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from skills_store import reference
from skills_store.disk import layout, store_folder
from skills_store.disk.blobs import Blobs
from skills_store.disk.durable import Create, create
from skills_store.disk.leases import Leases
from skills_store.disk.locks import Locks
from skills_store.disk.skill_versions import SkillVersions
from skills_store.errors import AppendOnlyStore, UnknownSkill, UnreachableOrigin, UnsafeSweep
from skills_store.remote.mirror import Mirror
from skills_store.remote.origin import Origin

logger = logging.getLogger("skills_store")


@dataclass(frozen=True)
class Storage:
    root: Path
    location: str  # the store's name for users
    mirror: Mirror | None
    create: Create  # first in the origin, if there is one, then here
    blobs: Blobs
    leases: Leases
    locks: Locks

    def skill(self, name: str) -> SkillVersions:
        return SkillVersions(
            name, self.root / "skills" / reference.check_name(name), self.blobs, self.create
        )

    def refresh_skill(self, name: str) -> SkillVersions:
        """The skill, updated from the origin."""
        skill = self.skill(name)
        self._refresh(f"skills/{name}/", skill.records)
        return skill

    def find_skill(self, name: str) -> SkillVersions:
        """A skill that ever had a version, or UnknownSkill."""
        skill = self.refresh_skill(name)
        if not skill.exists():
            names = [each.name for each in self.list_skills() if each.numbers()]
            raise UnknownSkill(name, names, self.location)
        return skill

    def list_skills(self, *, lost: bool = False) -> list[SkillVersions]:
        """Every skill that ever had a version; `lost`: also skill folders without any record."""
        skills = self.root / "skills"
        self._refresh("skills/", skills)
        try:
            entries = sorted(os.listdir(skills))
        except FileNotFoundError:
            return []
        candidates = [self.skill(entry) for entry in entries if reference.is_name(entry)]
        return [
            skill for skill in candidates if skill.exists() or (lost and skill.directory.is_dir())
        ]

    def write_blob(self, data: bytes) -> None:
        """Write a blob, which is durable after `blobs.sync`."""
        blob = self.blobs.write(data)
        if self.mirror:
            self.mirror.upload_blob(self.blobs.path(blob), blob)

    @contextmanager
    def open_uncached(self) -> Iterator[Storage]:
        """The storage behind an empty cache, so that everything comes from the origin, or
        UnreachableOrigin; without an origin, this storage.
        """
        if self.mirror is None:
            yield self
            return
        with TemporaryDirectory(prefix="repertoire-") as folder:
            fresh = open_storage(Path(folder), self.mirror.origin)
            assert fresh.mirror is not None
            fresh.mirror.refresh("skills/")
            layout.check_readable(fresh.root, fresh.location)
            yield fresh

    def list_sweepable(self) -> list[SkillVersions]:
        """Every skill, also one without any record. Raises UnsafeSweep for a folder that is no
        skill: it may be a backup.
        """
        skills = self.root / "skills"
        foreign = [
            path
            for path in sorted(skills.glob("*"))
            if not reference.is_name(path.name) and path.is_dir()
        ]
        if foreign:
            raise UnsafeSweep(f"{foreign[0]} is no skill's folder")
        return self.list_skills(lost=True)

    def check_deletable(self, failure: str) -> None:
        if self.mirror:
            raise AppendOnlyStore(failure, self.location)

    def _refresh(self, prefix: str, cached: Path) -> None:
        """While the origin is unreachable, `cached` is served, if it exists."""
        if self.mirror is None:
            return
        try:
            self.mirror.refresh(prefix)
        except UnreachableOrigin as error:
            if not cached.exists():
                raise
            logger.warning("%s; going on with what is cached", error)
        layout.check_readable(self.root, self.location)


def open_storage(root: Path, origin: Origin | None) -> Storage:
    location = origin.url if origin else str(root)
    staging = root / "staging"
    store_folder.check(root)
    layout.check_readable(root, location)
    mirror = Mirror(origin, root, staging) if origin else None
    create_file = mirror.create if mirror else partial(create, staging)
    return Storage(
        root=root,
        location=location,
        mirror=mirror,
        create=create_file,
        blobs=Blobs(root / "blobs" / "sha256", staging, mirror and mirror.fetch),
        leases=Leases(root / "leases", create_file),
        locks=Locks(root, location, create_file),
    )
