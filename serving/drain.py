"""Drain: what happens between SIGTERM and the end of the process.

For `seconds`, /readyz says 503 and every reply asks its client to connect anew, while requests are still taken: load
balancers and keep-alive clients find another process before this one stops listening. Then uvicorn takes over, which
finishes what is under way.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType

from serving.door import Door


def drain_on_sigterm(door: Door, seconds: float) -> None:
    """Stand before uvicorn's own handler. Does nothing where there is none, or signals are another thread's affair."""
    ends = signal.getsignal(signal.SIGTERM)
    if not callable(ends) or not seconds or threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()

    def begin(number: int, frame: FrameType | None) -> None:
        if door.draining:  # asked twice: now
            ends(number, frame)
        door.draining = True
        loop.call_soon_threadsafe(loop.call_later, seconds, lambda: ends(number, None))

    signal.signal(signal.SIGTERM, begin)
