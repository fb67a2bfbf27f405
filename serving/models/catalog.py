"""Catalog: the versions open for use, by reference. Opens what a request names, once; never decides
what exists.

A reference keeps its meaning until `refresh` finds another one in the store, opens it and finds it
good; then the next request has the new version, and those under way end on the one they began with.
A new version that cannot be opened, or a store that cannot be read, changes nothing: what is loaded
is served, and `stale` says why."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from anyio.to_thread import run_sync

from skills_store import reference
from skills_store.errors import StoreError, UnknownAlias, UnusableGraph
from skills_store.store import Store
from skills_store.version import Version

log = logging.getLogger("repertoire.serving")


class OpenVersion(Protocol):
    """A version whose graphs are loaded."""

    @property
    def nbytes(self) -> int: ...  # of its graphs


T = TypeVar("T", bound=OpenVersion)
Key = TypeVar("Key", str, Version)


class Catalog(Generic[T]):
    """`capacity` bytes of graphs stay open, and what `pinned` means in any case; beyond them, least
    recently used first.

    A failure to open is raised in the requests that wait for that version, and nothing of it is
    kept."""

    def __init__(
        self,
        store: Store,
        open_version: Callable[[Version], Coroutine[Any, Any, T]],
        capacity: int,
        observe: Callable[[str], None],  # "moved" or "failed"
        pinned: str | None = None,
    ) -> None:
        self._store = store
        self._open_version = open_version
        self._capacity = capacity
        self._observe = observe
        self._pinned = _normalize(pinned) if pinned else ""
        self._resolved: dict[str, Version] = {}  # by normalized reference
        self._items: OrderedDict[Version, T] = OrderedDict()  # least recently used first
        self._taking: dict[str, asyncio.Task[T]] = {}  # by normalized reference
        self._opening: dict[Version, asyncio.Task[T]] = {}
        # reference -> why its newest meaning is not the one served
        self.stale: dict[str, StoreError | OSError] = {}

    def get_open(self, ref: str) -> T | None:
        """What `ref` means, if that is open already."""
        version = self._resolved.get(_normalize(ref))
        if version is None:
            return None
        self._items.move_to_end(version)
        return self._items[version]

    async def take(self, ref: str) -> T:
        """What `ref` means, opened if need be. Raises StoreError or OSError where that is
        impossible."""
        item = self.get_open(ref)
        if item is not None:
            return item
        reference.parse(ref)  # a malformed one is refused as its client wrote it
        # A task for each reference: a slow file delays only those that name it.
        return await _share(self._taking, _normalize(ref), self._fetch)

    def get_last_used(self) -> T | None:
        """What was used last, or None where nothing is open: for examples, not for answers."""
        return next(reversed(self._items.values()), None)

    def list_open(self) -> tuple[Version, ...]:
        """The open versions, least recently used first."""
        return tuple(self._items)

    async def refresh(self) -> None:
        """Look once whether the store gives any reference in use another meaning."""
        # Numbers and digests mean the same for ever; `latest` and other aliases do not.
        for ref in [ref for ref in self._resolved if not reference.parse(ref).is_pinned]:
            try:
                version = await run_sync(self._store.resolve, ref)
                if version != self._resolved.get(ref):
                    await self._open_as(ref, version)
                    self._observe("moved")
                self.stale.pop(ref, None)
            except UnknownAlias:  # taken away on purpose; a store that is away is no UnknownAlias
                self._resolved.pop(ref, None)
            except (StoreError, OSError) as error:
                self._note_stale(ref, error)
            except Exception as error:  # whatever it is, the other references are still followed
                self._note_stale(ref, UnusableGraph(f"{ref}: {error!r}"))

    def _note_stale(self, ref: str, error: StoreError | OSError) -> None:
        if str(self.stale.get(ref)) != str(error):
            log.warning("%s stays as it is: %s", ref, error)
            self._observe("failed")
        self.stale[ref] = error

    async def _fetch(self, ref: str) -> T:
        return await self._open_as(ref, await run_sync(self._store.resolve, ref))

    async def _open_as(self, ref: str, version: Version) -> T:
        """Only here does a reference get a meaning: between two requests, and to a version that is
        open."""
        item = self._items.get(version)
        if item is None:  # two references may come to mean one version at the same time
            item = await _share(self._opening, version, self._open_version)
        self._items[version] = item
        self._items.move_to_end(version)
        self._resolved[ref] = version
        self._evict(version)
        return item

    def _evict(self, newest: Version) -> None:
        kept = {newest, self._resolved.get(self._pinned)}
        used = sum(item.nbytes for item in self._items.values())
        for version in [version for version in self._items if version not in kept]:
            if used <= self._capacity:
                break
            used -= self._items.pop(version).nbytes
        # A reference is remembered only as long as what it means is open.
        self._resolved = {
            ref: version for ref, version in self._resolved.items() if version in self._items
        }
        self.stale = {ref: why for ref, why in self.stale.items() if ref in self._resolved}


async def _share(
    tasks: dict[Key, asyncio.Task[T]], key: Key, begin: Callable[[Key], Coroutine[Any, Any, T]]
) -> T:
    """The result of `begin(key)`, which runs once for all callers of that key while it runs."""
    task = tasks.get(key)
    if task is None:
        task = asyncio.create_task(begin(key))
        task.add_done_callback(lambda _: tasks.pop(key))
        tasks[key] = task
    return await asyncio.shield(task)  # a client that leaves must not cancel it for the others


def _normalize(ref: str) -> str:
    """A name alone means its latest version."""
    return ref if "@" in ref else f"{ref}@{reference.LATEST}"
