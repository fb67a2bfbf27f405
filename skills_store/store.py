"""The skill store: versions that never change, on a disk or in a bucket. Serves nothing unverified.

A publish writes and syncs its blobs first and its record last, so a version exists completely or
not at all, without any repair on opening. Reading takes no lock and writes nothing: a store may be
mounted read-only. docs/store.md describes the files.

With an origin, the folder is the cache of a bucket of the same layout: records, moves and
signatures are created in the bucket first. With `bundled`, the versions of that folder are read as
if they were in the store, and never written.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from skills_store import places, reference
from skills_store.admission import regression
from skills_store.disk import garbage, index, store_folder, tombstones
from skills_store.disk.aliases import plan_rollback
from skills_store.disk.garbage import GRACE, Garbage
from skills_store.disk.leases import Lease, check_span
from skills_store.disk.records import current_user
from skills_store.disk.references import list_references
from skills_store.disk.skill_versions import SkillVersions
from skills_store.disk.tombstones import Tombstone
from skills_store.errors import (
    InvalidReference,
    StoreError,
    UnknownAlias,
    VersionInUse,
)
from skills_store.places import BUNDLED
from skills_store.publisher import StorePublisher
from skills_store.version import Fault, Survey, Version

__all__ = ["BUNDLED", "Fault", "Store", "Survey", "Version", "default_root"]


def default_root() -> Path:
    """$REPERTOIRE_STORE, or the default of skills_store/places.py."""
    return places.store()


class Store(StorePublisher):
    """Stateless: every call reads the disk, so any number of processes may share one root."""

    def alias(
        self, name: str, alias: str, number: int, why: str = "", *, force: bool = False
    ) -> Version:
        """Point `alias` at a version that can be served. The move is logged; another one undoes it.

        Raises Regression if the alias is protected, as `prod` is, and the version's card is worse
        than that of its current one, unless forced. An alias whose last move cannot be read may be
        protected: only a forced move repairs it.
        """
        reference.check_alias(alias)
        skill = self._find_skill(name)
        if skill.is_in_base(number):
            self._check_own(skill.load(number), f"{name}@{alias} is not moved")
        with self._storage.locks.hold_shared(f"{name}@{alias} is not moved"):
            return skill.aliases.move(
                alias,
                regression.plan_move(alias, number, skill.load_live, force=force),
                why,
                repair=force,
            )

    def rollback(self, name: str, alias: str, why: str = "") -> Version:
        """Move `alias` back to its last earlier version that still exists; a repeated rollback goes
        further back. No check is applied.

        The move is logged, with the move that it undoes. Raises NoEarlierVersion if there is none
        to return to.
        """
        skill = self._find_aliased(name, alias)
        with self._storage.locks.hold_shared(f"{name}@{alias} is not moved"):
            return skill.aliases.move(
                alias, plan_rollback(skill.aliases, alias, skill.load_live), why
            )

    def protect(self, name: str, alias: str, why: str = "", *, on: bool = True) -> Version:
        """Protect `alias` from unforced moves to a worse version; `on` false allows them again."""
        skill = self._find_aliased(name, alias)
        with self._storage.locks.hold_shared(f"{name}@{alias} is left as it was"):
            return skill.aliases.move(
                alias, regression.plan_protection(skill.load_live, on=on), why
            )

    def lease(self, ref: str, seconds: float, why: str = "") -> Lease:
        """Keep a version from being deleted for `seconds`, or until the lease is released."""
        check_span("a lease", seconds, least=1)
        self._storage.check_deletable(f"{ref} is not leased")
        version = self.resolve(ref)  # a missing version is refused before anything is written
        self._check_own(version, f"{ref} is not leased")
        with self._storage.locks.hold_shared(f"{ref} is not leased"):
            return self._storage.leases.grant(self.resolve(ref), seconds, why, self._clock())

    def release(self, lease: str) -> None:
        """End a lease early, by its id or a unique prefix of it."""
        lease_id = self._storage.leases.find(lease)
        with self._storage.locks.hold_shared(f"lease {lease_id} is not released"):
            self._storage.leases.release(lease_id)

    def delete(self, ref: str, why: str) -> Tombstone:
        """Delete a version for good; VersionInUse while anything refers to it. Its number is never
        used again.

        `ref` must be a number or digest: an alias or `latest` may move while one types.
        """
        parsed = reference.parse(ref)
        if not parsed.is_pinned:
            raise InvalidReference(ref, "a deletion names its version by number or digest")
        if not why.strip():
            raise StoreError(f"{ref} is not deleted: say why, for the log")
        self._storage.check_deletable(f"{ref} is not deleted")
        skill = self._find_skill(parsed.name)
        number = skill.find_number(parsed.selector)
        if skill.is_in_base(number):
            self._check_own(skill.load(number), f"{ref} is not deleted")
        with self._storage.locks.hold_exclusive(f"{ref} is not deleted"):
            number = skill.find_number(parsed.selector)
            now = self._clock()
            skills = self._storage.list_skills()
            leases = self._storage.leases.read_all()
            if references := tuple(list_references(skill, number, skills, leases, now)):
                raise VersionInUse(f"{skill.name}@{number}", references)
            tombstone = Tombstone(
                name=skill.name,
                number=number,
                digest=skill.digest(number),
                at=now,
                by=current_user(),
                why=why,
            )
            return tombstones.commit(skill.records, self._storage.create, tombstone)

    def gc(self, grace: float = GRACE, *, dry_run: bool = False) -> Garbage:
        """Free the files that nothing has needed for `grace` seconds, and return them.

        Raises UnsafeSweep if a version cannot be read, or the structure shows that something is
        lost.
        """
        since = self._clock() - timedelta(seconds=check_span("a grace", grace))
        self._storage.check_deletable("nothing is swept")
        blobs = self._storage.blobs
        leases = self._storage.leases
        if not store_folder.is_store(self.root):
            store_folder.check(self.root)
            return Garbage()
        if dry_run:
            return garbage.find(self._storage.list_sweepable(), blobs, leases, since)
        with self._storage.locks.hold_exclusive("gc stopped"):
            skills = self._storage.list_sweepable()
            unneeded = garbage.find(skills, blobs, leases, since)
            garbage.sweep(unneeded, skills)
            for skill in filter(SkillVersions.exists, skills):
                index.rewrite(skill)
        return unneeded

    def _find_aliased(self, name: str, alias: str) -> SkillVersions:
        skill = self._find_skill(name)
        if alias not in skill.aliases.list_names():
            raise UnknownAlias(alias, skill.aliases.list_names(), name)
        return skill
