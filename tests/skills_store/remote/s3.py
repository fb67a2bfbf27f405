"""An S3 server on loopback, a process of its own: `python s3.py PORT`.

moto's, but one request at a time: its own server checks `If-None-Match` and writes in two steps, so
that two concurrent requests could both create a key, which S3 excludes.
"""

from __future__ import annotations

import sys

from moto.moto_server.threaded_moto_server import MotoRequestHandler
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if __name__ == "__main__":
    app = DomainDispatcherApplication(create_backend_app)
    run_simple(
        "127.0.0.1", int(sys.argv[1]), app, threaded=False, request_handler=MotoRequestHandler
    )
