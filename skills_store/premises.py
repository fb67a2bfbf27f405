"""Where the parts of a store lie, and how each is reached: its shelves, blobs, locks and leases, here or behind a cache."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skills_store import reference
from skills_store.disk import layout
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

    def shelves(self, *, strict: bool = False) -> list[Shelf]:
        """Of every skill that ever had a version. Strict: a folder that is none is refused; its files may be needed."""
        skills = self.root / "skills"
        self._refresh("skills/", skills)
        try:
            entries = sorted(os.listdir(skills))
        except FileNotFoundError:
            return []
        if strict and (odd := [e for e in entries if not reference.is_name(e) and (skills / e).is_dir()]):
            raise Unsweepable(f"{skills / odd[0]} is no skill's folder")
        return [shelf for e in entries if reference.is_name(e) and (shelf := self.shelf(e)).exists()]

    def keep(self, data: bytes) -> None:
        """A blob, durable once `blobs.sync` was called."""
        blob = self.blobs.write(data)
        if self.mirror:
            self.mirror.keep(self.blobs.path(blob), blob)

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
