"""Write locks: any number of processes add at once, or one deletes alone. Readers take none.

If a writer may not add (a later layout, a disk that refuses), the error is one line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skills_store.disk import layout, store_folder
from skills_store.disk.durable import Create, lock_file, make_dirs
from skills_store.errors import FailedWrite


@dataclass(frozen=True)
class Locks:
    """Two flocks, released by the kernel when their process dies. Not reentrant.

    `failure` names what was not done if the disk refuses.
    """

    root: Path
    location: str  # the store, as its users call it
    create: Create

    @contextlib.contextmanager
    def hold_shared(self, failure: str) -> Iterator[None]:
        """Held from a publish's first blob to its record, so that gc does not sweep its blobs."""
        with self._hold(failure, shared=True):
            yield

    @contextlib.contextmanager
    def hold_exclusive(self, failure: str) -> Iterator[None]:
        """Held to inspect and remove: no new reference can appear meanwhile."""
        with self._hold(failure, shared=False):
            yield

    @contextlib.contextmanager
    def _hold(self, failure: str, *, shared: bool) -> Iterator[None]:
        try:
            store_folder.check(self.root)
            layout.check_writable(self.root, self.location)
            with self._acquire(shared=shared):
                layout.write_marker(self.root, self.location, self.create)
                yield
        except OSError as error:
            raise FailedWrite(
                failure, f"{error.strerror or error}, in {error.filename or self.root}"
            ) from error

    @contextlib.contextmanager
    def _acquire(self, *, shared: bool) -> Iterator[None]:
        lock = self.root / "lock"
        make_dirs(lock)
        with contextlib.ExitStack() as held:
            # A waiting process holds `queue`, or overlapping publishers would starve a deletion.
            with lock_file(lock / "queue"):
                held.enter_context(lock_file(lock / "access", shared=shared))
            yield
