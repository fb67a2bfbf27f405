"""GraphRunner: runs graphs in this process. Bounds the threads and the queues, and warms a graph
before it is used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import Any, TypeVar

import numpy as np

from serving.models.batcher import MAX_ROWS, Batcher, Run, RunRecord
from skills_store.errors import UnusableGraph
from skills_store.runtime.onnx_session import Device

T = TypeVar("T")
INLINE = 0.005  # s: a full batch that takes less may run on the event loop


@dataclass(frozen=True)
class GraphRunner:
    threads: ThreadPoolExecutor  # for what is too long for the event loop
    max_waiting: int  # rows, per graph
    device: Device
    observe: Callable[[str, RunRecord], None]  # (the version's reference, what was run)

    async def run_on_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work(*arguments)` on a thread: a clip takes as long as thousands of actions."""
        return await asyncio.get_running_loop().run_in_executor(
            self.threads, partial(work, *arguments)
        )

    def make_batcher(self, ref: str, run: Run, *row: np.ndarray) -> Batcher:
        """Warm the graph and make its Batcher. `row` is one valid row of each input, (1, width)."""
        full = [np.repeat(array, MAX_ROWS, axis=0) for array in row]
        for inputs in (row, full):
            if not np.isfinite(run(*inputs)).all():
                raise UnusableGraph(
                    f"{ref} answers a character at rest with numbers that are not finite"
                )
        # CPU time, because on a busy machine every graph is slow by wall time
        started = thread_time()
        run(*full)
        inline = self.device == "cpu" and thread_time() - started < INLINE
        observe = partial(self.observe, ref)
        return Batcher(run, self.threads, inline, self.max_waiting, observe)
