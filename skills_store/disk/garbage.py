"""Garbage: blobs that no version refers to, leases that ended before the grace, and files left by
crashed writers.

Blobs of live versions, unexpired leases and recent deletions are needed. Everything younger than
the grace stays, too: a reader may have just resolved a version, and a deletion may be regretted.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from skills_store.disk import audit, tombstones
from skills_store.disk.blobs import Blobs
from skills_store.disk.durable import sync_dir
from skills_store.disk.leases import Lease, Leases
from skills_store.disk.skill_versions import SkillVersions
from skills_store.errors import CorruptStore, UnsafeSweep

HEX = re.compile(r"[0-9a-f]{64}")
GRACE = 3600.0  # s


@dataclass(frozen=True)
class Orphan:
    path: Path
    bytes: int


@dataclass(frozen=True)
class Garbage:
    """What gc frees, or would free; `needed` blobs stay."""

    orphans: tuple[Orphan, ...] = ()
    needed: int = 0

    @property
    def bytes(self) -> int:
        return sum(orphan.bytes for orphan in self.orphans)


def find(skills: Sequence[SkillVersions], blobs: Blobs, leases: Leases, since: datetime) -> Garbage:
    """Files older than `since` that nothing needs. UnsafeSweep if anything is lost or damaged."""
    for skill in skills:
        _check_intact(skill)
    if fault := next(audit.check_parents(skills), None):
        raise UnsafeSweep(fault.message)
    try:
        granted = leases.read_all()
        needed = frozenset().union(*_list_needed(skills, granted, since))
    except CorruptStore as error:
        raise UnsafeSweep(str(error)) from error
    kept_names = {digest.removeprefix("sha256:") for digest in needed}
    expired = {x.id for x in granted if x.until <= since}
    unneeded = (
        s
        for s in _list_older(blobs.root, since)
        if HEX.fullmatch(s.path.name) and s.path.name not in kept_names
    )
    ended = (s for s in _list_older(leases.directory, since) if s.path.stem in expired)
    return Garbage((*unneeded, *ended, *_list_older(blobs.staging, since)), len(kept_names))


def sweep(garbage: Garbage, skills: Sequence[SkillVersions]) -> None:
    """Tombstones are synced before their blobs are removed: losing one in a power cut would leave a
    version without files.
    """
    for skill in skills:
        if skill.records.is_dir():
            sync_dir(skill.records)
    for orphan in garbage.orphans:
        os.unlink(orphan.path)
    for directory in {orphan.path.parent for orphan in garbage.orphans}:
        sync_dir(directory)


def _check_intact(skill: SkillVersions) -> None:
    # A deleted version's record is needed for the grace only; `_list_needed` reads it.
    deleted = frozenset(skill.list_deleted())
    if fault := next(audit.check_structure(skill, settled=deleted), None):
        raise UnsafeSweep(fault.message)
    for move in skill.aliases.read_intact():
        if move.number in deleted:
            raise UnsafeSweep(
                f"{skill.name}@{move.alias} points to {skill.name}@{move.number}, which is deleted"
            )


def _list_needed(
    skills: Sequence[SkillVersions], leases: Sequence[Lease], since: datetime
) -> Iterator[frozenset[str]]:
    by_name = {skill.name: skill for skill in skills}
    for skill in skills:
        for number in _list_kept(skill, since):
            yield skill.list_needed(number)
    for lease in leases:
        if lease.until > since:
            if lease.name not in by_name:
                raise CorruptStore(str(lease), f"{lease.ref} is not there")
            yield by_name[lease.name].list_needed(lease.number)


def _list_kept(skill: SkillVersions, since: datetime) -> Iterator[int]:
    """Numbers of live versions, and of those deleted within the grace, unless a sweep with a
    shorter grace has freed them.
    """
    deleted = frozenset(skill.list_deleted())
    # A tombstone may exist without its record.
    for number in sorted({*skill.list_all_numbers(), *deleted}):
        recent = number in deleted and tombstones.read(skill.records, skill.name, number).at > since
        if number not in deleted or (recent and not skill.is_swept(number)):
            yield number


def _list_older(directory: Path, since: datetime) -> Iterator[Orphan]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        # A dry run holds no lock: writers may remove their files.
        with contextlib.suppress(FileNotFoundError):
            stat = entry.stat(follow_symlinks=False)
            if entry.is_file(follow_symlinks=False) and stat.st_mtime <= since.timestamp():
                yield Orphan(Path(entry.path), stat.st_size)
