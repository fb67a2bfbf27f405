"""uvicorn's supervisor of worker processes, which notices at once that a worker has ended.

uvicorn pings each worker through a pipe, and waits for the answer as long as
`timeout_worker_healthcheck`. The parent keeps its copy of the worker's end of the pipe open, so
that the end of the worker does not end that wait."""

from uvicorn.supervisors import Multiprocess


class Supervisor(Multiprocess):
    def keep_subprocess_alive(self) -> None:
        for process in self.processes:  # they have been started, and have their own copy
            process.child_conn.close()
        super().keep_subprocess_alive()
