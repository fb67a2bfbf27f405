"""What happens between SIGTERM and the end of the process.

For `seconds`, /readyz answers 503 and every reply has `connection: close`, while requests are still
accepted: load balancers and keep-alive clients find another process before this one stops
listening. Then uvicorn finishes the requests in progress."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from serving.server.gateway import Gateway


def drain_on_sigterm(gateway: Gateway, seconds: float) -> None:
    """Run the drain before uvicorn's own handler. A second SIGTERM ends it.

    Does nothing without a handler, or outside the main thread: there, signals belong to another
    component."""
    end = signal.getsignal(signal.SIGTERM)
    if not callable(end) or threading.current_thread() is not threading.main_thread():
        return

    def begin(number: int, frame: FrameType | None) -> None:
        if gateway.draining:
            end(number, frame)
        gateway.drain(seconds, lambda: end(number, None))

    signal.signal(signal.SIGTERM, begin)
