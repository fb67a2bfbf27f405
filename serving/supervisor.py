"""Supervisor: uvicorn's own, of the worker processes, with one thing more. A worker that ends is missed at once.

uvicorn asks each worker twice a second whether it lives, and waits for the answer. One that ends between question and
answer closes its end of the pipe; but the parent holds a copy of that end, so would wait to the end of its patience.
"""

from __future__ import annotations

from uvicorn.supervisors import Multiprocess


class Supervisor(Multiprocess):
    def keep_subprocess_alive(self) -> None:
        for process in self.processes:  # started, so they have their own copy
            process.child_conn.close()
        super().keep_subprocess_alive()
