"""Planning: simulates a skill library. The only part of the service that needs torch and mujoco,
which the extra `plan` installs; they are imported with the first plan."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from serving.wire.problems import Refusal
from skills_store.store import Store

if TYPE_CHECKING:
    from hlc.single_planner import SinglePlanner

T = TypeVar("T")
PACKAGES = ("torch", "mujoco")
EXTRA = "plan"
MAX_OPEN = 2  # skill versions whose simulations are kept; one takes some 10 MB
MAX_WAITING = 16  # requests; a plan takes about a tenth of a second of all processors


class Planners:
    """The simulations of the skill versions last used for plans. Plans run one at a time, on a
    thread of their own: one plan uses all processors."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._threads = threads
        self._thread = ThreadPoolExecutor(1, "plan")
        self._open: OrderedDict[str, SinglePlanner] = OrderedDict()  # least recently used first
        self._waiting = 0

    async def run(self, ref: str, work: Callable[[SinglePlanner], T]) -> T:
        """Run `work` with the planner of version `ref`, pinned by its digest. Raises Refusal if too
        many plans wait, and what `open_parent` and `work` raise."""
        require_extra()
        if self._waiting >= MAX_WAITING:
            message = f"{self._waiting} plans are waiting"
            raise Refusal(503, "overloaded", message, None, "the same, later", retry_after=1)
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, partial(self._work, ref, work))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._thread.shutdown(wait=False)

    def _work(self, ref: str, work: Callable[[SinglePlanner], T]) -> T:
        from hlc.single_planner import SinglePlanner

        planner = self._open.get(ref)
        if planner is None:
            planner = self._open[ref] = SinglePlanner.open(self._store, ref, self._threads)
        self._open.move_to_end(ref)
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        return work(planner)


def require_extra() -> None:
    """Raises Refusal, status 501, where a package of the extra is missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        message = (
            f"this service cannot plan without {' and '.join(missing)}: "
            f'pip install "repertoire[{EXTRA}]"'
        )
        raise Refusal(501, "extra_missing", message, None, f"a service with the extra {EXTRA!r}")
