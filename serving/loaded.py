"""Loaded: the versions open for use, by reference. Opens what is asked for, once; never decides what exists."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

from anyio.to_thread import run_sync

from skills_store.store import Store
from skills_store.version import Version

T = TypeVar("T")


class Loaded(Generic[T]):
    """References are resolved anew every `refresh` seconds, so that a moved alias or a new latest is picked up;
    versions are immutable, so what is open stays good until `capacity` others were used since.

    A failure belongs to the reference that met it: it is raised to whoever asked, and nothing is kept of it.
    """

    def __init__(self, store: Store, opened: Callable[[Store, Version], T], refresh: float, capacity: int) -> None:
        self._store = store
        self._opened = opened
        self._refresh = refresh
        self._capacity = capacity
        self._meanings: dict[str, tuple[float, Version]] = {}  # reference -> when it was resolved, and to what
        self._items: OrderedDict[Version, T] = OrderedDict()  # least recently used first
        self._opening: dict[str, asyncio.Task[T]] = {}

    async def take(self, ref: str) -> T:
        if ref in self._meanings:
            resolved, version = self._meanings[ref]
            if monotonic() - resolved < self._refresh:
                self._items.move_to_end(version)
                return self._items[version]
        # One task per reference, however many requests wait: a slow file delays only those who want it.
        task = self._opening.get(ref)
        if task is None:
            task = self._opening[ref] = asyncio.create_task(self._fetch(ref))
            task.add_done_callback(lambda _: self._opening.pop(ref))
        return await asyncio.shield(task)  # a client that leaves must not cancel it for the others

    def recent(self, ref: str | None = None) -> T | None:
        """What `ref` meant last, or else what was used last, however long ago: for examples, not for answers."""
        if ref is not None:
            return self._items[self._meanings[ref][1]] if ref in self._meanings else None
        return next(reversed(self._items.values()), None)

    async def _fetch(self, ref: str) -> T:
        version = await run_sync(self._store.resolve, ref)
        if version not in self._items:
            self._put(version, await run_sync(self._opened, self._store, version))
        self._items.move_to_end(version)
        self._meanings[ref] = (monotonic(), version)
        return self._items[version]

    def _put(self, version: Version, item: T) -> None:
        self._items[version] = item
        while len(self._items) > self._capacity:
            self._items.popitem(last=False)
        # A reference is remembered only as long as what it means is open.
        self._meanings = {ref: meant for ref, meant in self._meanings.items() if meant[1] in self._items}
