"""Catalog: the open versions, by reference. Opens a version once, when a request names it; the
store decides which versions exist.

A reference stays bound to a version until `refresh` finds another one in the store and opens it;
new requests then get the new version, running ones finish on the old. If the new version cannot be
opened or the store cannot be read, the loaded version is served, and `stale` holds the error."""

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
    """Keeps `capacity` bytes of graphs open and evicts the least recently used first, but never the
    version of `pinned`.

    A failure to open is raised in the requests that wait for that version, and is not cached."""

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
        # reference -> why its newest version is not served
        self.stale: dict[str, StoreError | OSError] = {}

    def get_open(self, ref: str) -> T | None:
        """The version of `ref` if it is open, else None."""
        version = self._resolved.get(_normalize(ref))
        if version is None:
            return None
        self._items.move_to_end(version)
        return self._items[version]

    async def take(self, ref: str) -> T:
        """The version of `ref`, opened if necessary. Raises StoreError or OSError if that fails."""
        item = self.get_open(ref)
        if item is not None:
            return item
        reference.parse(ref)  # the error for a malformed one quotes the client's text
        # A task for each reference: a slow file delays only those that name it.
        return await _share(self._taking, _normalize(ref), self._fetch)

    def get_last_used(self) -> T | None:
        """The last used version, or None if none is open: for examples, not for answers."""
        return next(reversed(self._items.values()), None)

    def list_open(self) -> tuple[Version, ...]:
        """The open versions, least recently used first."""
        return tuple(self._items)

    async def refresh(self) -> None:
        """Check once whether any reference in use now resolves to another version."""
        # Numbers and digests never move; `latest` and other aliases do.
        for ref in [ref for ref in self._resolved if not reference.parse(ref).is_pinned]:
            try:
                version = await run_sync(self._store.resolve, ref)
                if version != self._resolved.get(ref):
                    await self._open_as(ref, version)
                    self._observe("moved")
                self.stale.pop(ref, None)
            except UnknownAlias:  # removed by hand; a store that is gone raises another error
                self._resolved.pop(ref, None)
            except (StoreError, OSError) as error:
                self._note_stale(ref, error)
            except Exception as error:  # the other references are still refreshed
                self._note_stale(ref, UnusableGraph(f"{ref}: {error!r}"))

    def _note_stale(self, ref: str, error: StoreError | OSError) -> None:
        if str(self.stale.get(ref)) != str(error):
            log.warning("%s stays as it is: %s", ref, error)
            self._observe("failed")
        self.stale[ref] = error

    async def _fetch(self, ref: str) -> T:
        return await self._open_as(ref, await run_sync(self._store.resolve, ref))

    async def _open_as(self, ref: str, version: Version) -> T:
        """The only place that binds a reference: between two requests, and to an open version."""
        item = self._items.get(version)
        if item is None:  # two references may resolve to one version at the same time
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
        # A reference is kept only while its version is open.
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
