"""uvicorn's HTTP protocol with two limits that no ASGI application can set, for it learns of a request from its head.

A request that arrives too slowly ends the connection. A connection beyond the limit is marked, so that the application
refuses its requests. When the process ends, an idle connection is closed a moment later than uvicorn would: a request
that is on its way there is answered. Nothing is answered here.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CLOSING_DELAY = 1.0  # s
OVER_LIMIT = "over_limit"  # in the scope's `state`


class LimitedProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, request_timeout: float, max_connections: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request_timeout = request_timeout  # s
        self._max_connections = max_connections
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._over_limit = len(self.connections) > self._max_connections
        self._deadline = self.loop.call_later(self._request_timeout, transport.close)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._over_limit:
            self.scope.setdefault("state", {})[OVER_LIMIT] = True
        if self._deadline is None:  # not the first request of the connection
            self._deadline = self.loop.call_later(self._request_timeout, self.transport.close)

    def on_message_complete(self) -> None:
        self._cancel_deadline()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        if self._over_limit:  # the mark is lost with the upgrade
            self.transport.close()
        else:
            super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        self.loop.call_later(CLOSING_DELAY if idle else 0.0, super().shutdown)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
