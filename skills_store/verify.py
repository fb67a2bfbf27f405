"""Whether a store, or one version of it, is as published: everything is read again, from the origin
if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from skills_store import reference
from skills_store.disk import audit, store_folder
from skills_store.disk.signatures import Signatures
from skills_store.errors import CorruptStore, NotAStore
from skills_store.storage import Storage
from skills_store.version import Fault, make_fault


def find_faults(at: Storage, ref: str | None) -> tuple[Fault, ...]:
    """Every fault once. Raises NotAStore if nothing was ever published, UnreachableOrigin if the
    origin does not answer all of it.
    """
    with at.open_uncached() as fresh:
        if not store_folder.is_store(fresh.root):
            raise NotAStore(at.location, "nothing was ever published there")
        return tuple(
            dict.fromkeys(_check_all(at, fresh) if ref is None else _check_version(fresh, ref))
        )


def _check_all(at: Storage, fresh: Storage) -> Iterator[Fault]:
    skills = fresh.list_skills(lost=True)
    for skill in skills:
        yield from audit.check_skill(skill)
        yield from Signatures(skill.directory / "signatures", skill.create).find_damaged()
    yield from audit.check_parents(skills)
    yield from audit.check_leases(fresh.leases, fresh.skill)
    if at.mirror:
        for key, error in at.mirror.find_departures(fresh.root):
            yield make_fault(key, error)


def _check_version(at: Storage, ref: str) -> Iterator[Fault]:
    parsed = reference.parse(ref)
    skill = at.find_skill(parsed.name)
    try:
        version = skill.select(parsed.selector)
    except CorruptStore as error:
        yield make_fault(ref, error)
    else:
        yield from audit.check_blobs(skill, version)
