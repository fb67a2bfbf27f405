"""The same application as a Ray Serve deployment: `serve run serving.ray_app:app`, replicas by
REPERTOIRE_REPLICAS.

Every replica opens the store itself and answers all HTTP requests. A WebSocket session stays on the
replica that it was opened on, because Ray keeps the connection. Ray's proxy carries the requests,
so the limits of `serving/server/connection_limits.py` do not apply."""

from __future__ import annotations

import os

from ray import serve  # pyright: ignore[reportMissingImports]  # an extra of its own

from serving.app import create_app


@serve.deployment(
    num_replicas=int(os.environ.get("REPERTOIRE_REPLICAS", "2")), max_ongoing_requests=256
)
@serve.ingress(create_app)
class Replica:
    """One process of the service."""


app = Replica.bind()  # pyright: ignore[reportAttributeAccessIssue]  # given by the decorator
