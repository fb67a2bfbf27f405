"""uvicorn's supervisor of worker processes, changed to notice at once that a worker has ended, and
to take its sessions out of the metrics.

uvicorn pings each worker through a pipe, and waits up to `timeout_worker_healthcheck` for the
answer. Its parent process keeps a copy of the worker's end of the pipe open, so that the wait goes
on after the worker has ended. This class closes that copy."""

from prometheus_client.multiprocess import mark_process_dead
from uvicorn.supervisors import Multiprocess


class Supervisor(Multiprocess):
    def keep_subprocess_alive(self) -> None:
        for process in self.processes:  # started processes have their own copy
            process.child_conn.close()
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in before - {process.pid for process in self.processes}:
            mark_process_dead(pid)  # a killed one could not do it itself
