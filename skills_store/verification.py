"""Whether a store, or one version of it, still is as it was published: read anew, and from the origin if there is one."""

from __future__ import annotations

from collections.abc import Iterator

from skills_store import reference
from skills_store.disk import audit, place
from skills_store.errors import CorruptStore, NotAStore
from skills_store.premises import Premises
from skills_store.trust.signatures import Signatures
from skills_store.version import Fault, fault


def faults(at: Premises, ref: str | None) -> tuple[Fault, ...]:
    """Each once. NotAStore where nothing was ever published, OriginAway where an origin does not answer all of it."""
    with at.afresh() as fresh:
        if not place.is_store(fresh.root):
            raise NotAStore(at.where, "nothing was ever published there")
        return tuple(dict.fromkeys(_whole(at, fresh) if ref is None else _of_one(fresh, ref)))


def _whole(at: Premises, fresh: Premises) -> Iterator[Fault]:
    shelves = fresh.shelves(lost=True)
    for shelf in shelves:
        yield from audit.whole(shelf)
        yield from Signatures(shelf.directory / "signatures", shelf.create).damaged()
    yield from audit.bound(shelves)
    yield from audit.leases(fresh.leases, fresh.shelf)
    if at.mirror:
        for key, error in at.mirror.departures(fresh.root):
            yield fault(key, error)


def _of_one(at: Premises, ref: str) -> Iterator[Fault]:
    wanted = reference.parse(ref)
    shelf = at.existing(wanted.name)
    try:
        version = shelf.select(wanted.selector)
    except CorruptStore as error:
        yield fault(ref, error)
    else:
        yield from audit.files(shelf, version)
