"""Deadline: one callback at a time on the event loop, which can be moved or cleared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def set(self, seconds: float, callback: Callable[[], object]) -> None:
        """Call `callback` after `seconds`, in place of what was set before."""
        self.clear()
        self._handle = self._loop.call_later(seconds, callback)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
