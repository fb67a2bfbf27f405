"""Where the parts of a store lie, and how each is reached: its skills, blobs, locks and leases,
here or behind a cache.
"""

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
    location: str  # what users call the store
    mirror: Mirror | None
    create: Create  # there first and then here, if there is an origin
    blobs: Blobs
    leases: Leases
    locks: Locks

    def skill(self, name: str) -> SkillVersions:
        return SkillVersions(
            name, self.root / "skills" / reference.check_name(name), self.blobs, self.create
        )

    def refresh_skill(self, name: str) -> SkillVersions:
        """With all that the origin has of it by now."""
        skill = self.skill(name)
        self._refresh(f"skills/{name}/", skill.records)
        return skill

    def find_skill(self, name: str) -> SkillVersions:
        """Of a skill that ever had a version, or UnknownSkill."""
        skill = self.refresh_skill(name)
        if not skill.exists():
            names = [each.name for each in self.list_skills() if each.numbers()]
            raise UnknownSkill(name, names, self.location)
        return skill

    def list_skills(self, *, lost: bool = False) -> list[SkillVersions]:
        """Of every skill that ever had a version; `lost`: also of one that has not a record left,
        if it had any.
        """
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
        """A blob, durable once `blobs.sync` was called."""
        blob = self.blobs.write(data)
        if self.mirror:
            self.mirror.upload_blob(self.blobs.path(blob), blob)

    @contextmanager
    def open_uncached(self) -> Iterator[Storage]:
        """Behind an empty cache, so that all there is comes from the origin, or UnreachableOrigin;
        without one, these.
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
        """Of every skill, also one that has not a record left. A folder that is none is refused: it
        may be a backup.
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
        """What is `cached` is served while the origin is away; what is not, cannot be."""
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
