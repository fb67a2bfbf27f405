"""Who may write when: any number that add together, or one that takes away alone. Readers ask no one.

And what a writer is told when it may not: a store of a later layout, or a disk that refuses, is one clear line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skills_store.disk import layout, place
from skills_store.disk.durable import Create, locked, make_dirs
from skills_store.errors import NotWritten


@dataclass(frozen=True)
class Locks:
    """Two flocks, let go of by the kernel when their process dies. Not to be entered again by whoever is inside.

    `otherwise` is what has not happened if the disk refuses.
    """

    root: Path
    where: str  # the store, as its users call it
    create: Create

    @contextlib.contextmanager
    def adding(self, otherwise: str) -> Iterator[None]:
        """From a publish's first blob to its record: what it has written so far is nobody's garbage yet."""
        with self._entered(otherwise, shared=True):
            yield

    @contextlib.contextmanager
    def removing(self, otherwise: str) -> Iterator[None]:
        """Nothing new can come to rely on what is being looked at."""
        with self._entered(otherwise, shared=False):
            yield

    @contextlib.contextmanager
    def _entered(self, otherwise: str, *, shared: bool) -> Iterator[None]:
        try:
            place.check(self.root)
            layout.check_writable(self.root, self.where)
            with self._room(shared=shared):
                layout.mark(self.root, self.where, self.create)
                yield
        except OSError as error:
            raise NotWritten(otherwise, f"{error.strerror or error}, in {error.filename or self.root}") from error

    @contextlib.contextmanager
    def _room(self, *, shared: bool) -> Iterator[None]:
        lock = self.root / "lock"
        make_dirs(lock)
        with contextlib.ExitStack() as room:
            # Whoever waits for the room holds the door: publishers that overlap would keep a remover out for ever.
            with locked(lock / "door"):
                room.enter_context(locked(lock / "room", shared=shared))
            yield
