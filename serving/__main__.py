"""`python -m serving`: the app on uvicorn, in as many processes as the settings say. Says in one line what it serves."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from pydantic import ValidationError

from serving.app import create_app
from serving.channel import Channel
from serving.connection import Connection
from serving.listener import Crowd, crowd_file
from serving.logs import configure
from serving.metrics import SHARED
from serving.settings import Settings
from serving.supervisor import Supervisor
from skills_store.errors import StoreError
from skills_store.opening import open_store
from skills_store.store import BUNDLED


def main() -> int:
    try:
        settings = Settings()
        app = worker()  # also where others serve: whatever is wrong with store or keys is said here, once
        listening = socket.create_server((settings.host, settings.port))
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(["REPERTOIRE", *map(str, first["loc"])]).upper()
        return _fail(f"{name}: {first['msg']}" if first["loc"] else first["msg"].removeprefix("Value error, "))
    except (StoreError, OSError, ValueError) as error:
        return _fail(str(error))
    host, port = listening.getsockname()[:2]
    scheme = "https" if settings.tls_cert else "http"
    print(f"Repertoire on {scheme}://{host}:{port} (docs: /docs) serves {_skills(settings)}", flush=True)
    os.environ["REPERTOIRE_STORE"] = str(settings.store)  # a worker begun after the first publish serves no other
    with _sharing(settings.workers):
        config = uvicorn.Config(
            app if settings.workers == 1 else "serving.__main__:worker",
            factory=settings.workers > 1,
            workers=settings.workers,
            loop="uvloop" if settings.workers == 1 else "serving.listener:Loop",
            http=Connection,
            ws=Channel,
            access_log=False,  # the door has its own
            log_config=None,
            timeout_graceful_shutdown=8,
            timeout_worker_healthcheck=60,  # on a busy machine a worker may take long to start: it is not hung
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
        )
        if settings.workers == 1:
            uvicorn.Server(config).run(sockets=[listening])
        else:
            Supervisor(config, sockets=[listening]).run()
    return 0


def worker() -> FastAPI:
    """The app of one process."""
    settings = Settings()
    configure(settings.access_log)
    return create_app(settings)


@contextmanager
def _sharing(workers: int) -> Iterator[None]:
    """Workers write what they count to files of one folder, so that any of them can answer /metrics for all, and knows
    whether another has fewer connections."""
    if workers == 1:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="repertoire-workers-") as folder:
        os.environ[SHARED] = folder
        Crowd.make(crowd_file(), workers)
        yield


def _skills(settings: Settings) -> str:
    """The names, or what is wrong: the service starts in any case, and /readyz says the same."""
    try:
        names = open_store(settings.store).names()
    except (StoreError, OSError) as error:
        return f"nothing: {error}"
    if settings.store == BUNDLED and not os.environ.get("REPERTOIRE_STORE"):
        return f"what comes with the project, {', '.join(names)}; what you publish, once it is started again"
    return ", ".join(names) or f"nothing yet: {settings.store} has no skills (make pretrain publishes one)"


def _fail(reason: str) -> int:
    print(f"serving: {' '.join(reason.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
