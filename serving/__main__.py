"""`python -m serving`: the app on uvicorn, on the address of the settings. Says in one line what it serves."""

from __future__ import annotations

import logging
import socket
import sys

import uvicorn
from pydantic import ValidationError

from serving.app import create_app
from serving.settings import Settings
from skills_store.errors import StoreError
from skills_store.opening import open_store


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        settings = Settings()
        app = create_app(settings)
        listening = socket.create_server((settings.host, settings.port))
    except ValidationError as error:
        first = error.errors()[0]
        return _fail(f"REPERTOIRE_{'.'.join(map(str, first['loc'])).upper()}: {first['msg']}")
    except (StoreError, OSError) as error:
        return _fail(str(error))
    host, port = listening.getsockname()[:2]
    print(f"Repertoire on http://{host}:{port} (docs: /docs) serves {_skills(settings)}", flush=True)
    # No access log: it costs a fifth of the throughput. uvicorn's own chatter stays in the log's level.
    config = uvicorn.Config(app, loop="uvloop", http="httptools", ws="none", access_log=False, log_level="warning")
    uvicorn.Server(config).run(sockets=[listening])
    return 0


def _skills(settings: Settings) -> str:
    """The names, or what is wrong: the service starts in any case, and /readyz says the same."""
    try:
        names = open_store(settings.store).names()
    except (StoreError, OSError) as error:
        return f"nothing: {error}"
    return ", ".join(names) or f"nothing yet: {settings.store} has no skills (make pretrain publishes one)"


def _fail(reason: str) -> int:
    print(f"serving: {' '.join(reason.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
