"""Where the parts of a store lie, and how each is reached: its shelves, blobs, locks and leases, here or behind a cache."""

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
from skills_store.disk import layout, place
from skills_store.disk.blobs import Blobs
from skills_store.disk.durable import Create, create
from skills_store.disk.leases import Leases
from skills_store.disk.locks import Locks
from skills_store.disk.shelf import Shelf
from skills_store.errors import OnlyGrows, OriginAway, UnknownSkill, Unsweepable
from skills_store.remote.mirror import Mirror
from skills_store.remote.origin import Origin

logger = logging.getLogger("skills_store")


@dataclass(frozen=True)
class Premises:
    root: Path
    where: str  # what users call the store
    mirror: Mirror | None
    create: Create  # there first and then here, if there is an origin
    blobs: Blobs
    leases: Leases
    locks: Locks

    def shelf(self, name: str) -> Shelf:
        return Shelf(name, self.root / "skills" / reference.check_name(name), self.blobs, self.create)

    def fresh(self, name: str) -> Shelf:
        """With all that the origin has of it by now."""
        shelf = self.shelf(name)
        self._refresh(f"skills/{name}/", shelf.records)
        return shelf

    def existing(self, name: str) -> Shelf:
        """Of a skill that ever had a version, or UnknownSkill."""
        shelf = self.fresh(name)
        if not shelf.exists():
            names = [each.name for each in self.shelves() if each.numbers()]
            raise UnknownSkill(name, names, self.where)
        return shelf

    def shelves(self, *, lost: bool = False) -> list[Shelf]:
        """Of every skill that ever had a version; `lost`: also of one that has not a record left, if it had any."""
        skills = self.root / "skills"
        self._refresh("skills/", skills)
        try:
            entries = sorted(os.listdir(skills))
        except FileNotFoundError:
            return []
        found = [self.shelf(entry) for entry in entries if reference.is_name(entry)]
        return [shelf for shelf in found if shelf.exists() or (lost and shelf.directory.is_dir())]

    def keep(self, data: bytes) -> None:
        """A blob, durable once `blobs.sync` was called."""
        blob = self.blobs.write(data)
        if self.mirror:
            self.mirror.keep(self.blobs.path(blob), blob)

    @contextmanager
    def afresh(self) -> Iterator[Premises]:
        """Behind an empty cache, so that all there is comes from the origin, or OriginAway; without one, these."""
        if self.mirror is None:
            yield self
            return
        with TemporaryDirectory(prefix="repertoire-") as folder:
            fresh = premises(Path(folder), self.mirror.origin)
            assert fresh.mirror is not None
            fresh.mirror.refresh("skills/")
            layout.check_readable(fresh.root, fresh.where)
            yield fresh

    def sweepable(self) -> list[Shelf]:
        """Of every skill, also one that has not a record left. A folder that is none is refused: it may be a backup."""
        skills = self.root / "skills"
        odd = [path for path in sorted(skills.glob("*")) if not reference.is_name(path.name) and path.is_dir()]
        if odd:
            raise Unsweepable(f"{odd[0]} is no skill's folder")
        return self.shelves(lost=True)

    def check_shrinks(self, otherwise: str) -> None:
        if self.mirror:
            raise OnlyGrows(otherwise, self.where)

    def _refresh(self, prefix: str, cached: Path) -> None:
        """What is `cached` is served while the origin is away; what is not, cannot be."""
        if self.mirror is None:
            return
        try:
            self.mirror.refresh(prefix)
        except OriginAway as error:
            if not cached.exists():
                raise
            logger.warning("%s; going on with what is cached", error)
        layout.check_readable(self.root, self.where)


def premises(root: Path, origin: Origin | None) -> Premises:
    where, staging = origin.url if origin else str(root), root / "staging"
    place.check(root)
    layout.check_readable(root, where)
    mirror = Mirror(origin, root, staging) if origin else None
    making = mirror.create if mirror else partial(create, staging)
    return Premises(
        root=root,
        where=where,
        mirror=mirror,
        create=making,
        blobs=Blobs(root / "blobs" / "sha256", staging, mirror and mirror.fetch),
        leases=Leases(root / "leases", making),
        locks=Locks(root, where, making),
    )
