"""References that keep a version from being deleted: aliases, leases, controllers. Reads, never
writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from skills_store.disk.leases import Lease
from skills_store.disk.skill_versions import SkillVersions
from skills_store.errors import CorruptRecord, StoreError


def list_references(
    skill: SkillVersions,
    number: int,
    skills: Iterable[SkillVersions],
    leases: Iterable[Lease],
    now: datetime,
) -> Iterator[str]:
    """Each reference, as text."""
    yield from _aliases(skill, number)
    for lease in leases:
        if (lease.name, lease.number) == (skill.name, number) and lease.until > now:
            yield f"{lease} holds it"
    yield from _controllers(skill, number, skills)


def _aliases(skill: SkillVersions, number: int) -> Iterator[str]:
    for alias in skill.aliases.list_names():
        try:
            if skill.aliases.read(alias).number == number:
                yield f"alias {alias} points to it"
        except CorruptRecord as error:
            yield f"{error}, so it may point to it; a move of {alias} with --force repairs it"


def _controllers(
    skill: SkillVersions, number: int, skills: Iterable[SkillVersions]
) -> Iterator[str]:
    digest = skill.digest(number)
    if digest is None:
        return  # nothing can be bound to a version without a digest
    others = [other for other in skill.numbers() if other != number]
    if any(skill.digest(other) == digest for other in others):
        return  # bound by digest: the other number serves them as well
    for candidate in skills:
        for candidate_number in candidate.numbers():
            if _is_bound(candidate, candidate_number, digest):
                yield f"controller {candidate.name}@{candidate_number} is bound to it"


def _is_bound(skill: SkillVersions, number: int, digest: str) -> bool:
    try:
        # Most manifests do not contain it, and need not be parsed.
        if digest.encode() not in skill.read_manifest(number):
            return False
        task = skill.load_live(number).manifest.task
    except StoreError:
        return False  # damaged: it is not served, and gc frees nothing until it is repaired
    return task is not None and task.parent.digest == digest
