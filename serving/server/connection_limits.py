"""uvicorn's HTTP protocol with limits that no ASGI application can set, for it learns of a request
from its head.

A request that arrives too slowly, and a head that does not end within twice `MAX_HEAD` bytes, end
the connection. A head beyond `MAX_HEAD`, and each request on a connection beyond the limit, are
marked, so that the application refuses them. When the process ends, an idle connection is closed a
moment later than uvicorn would: a request that is on its way there is answered. Nothing is answered
here."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CLOSING_DELAY = 1.0  # s
MAX_HEAD = 32_768  # bytes of the names and values of a request's headers
REFUSED = "refused"  # in the scope's `state`: one of the two reasons below
OVER_LIMIT = "over_limit"
HEAD_TOO_LARGE = "head_too_large"


class LimitedProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, request_timeout: float, max_connections: int, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._request_timeout = request_timeout  # s
        self._max_connections = max_connections
        self._deadline: asyncio.TimerHandle | None = None
        self._head_size = 0  # bytes of the present request's head
        self._in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._over_limit = len(self.connections) > self._max_connections
        self._deadline = self.loop.call_later(self._request_timeout, transport.close)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_size = 0
        self._in_head = True
        if self._over_limit:
            self.scope.setdefault("state", {})[REFUSED] = OVER_LIMIT
        if self._deadline is None:  # not the first request of the connection
            self._deadline = self.loop.call_later(self._request_timeout, self.transport.close)

    def data_received(self, data: bytes) -> None:
        head = self.scope  # uvicorn makes another one for each request
        begun = self._head_size
        super().data_received(data)
        if self._in_head and self.scope is head:  # all of it belongs to a head that goes on
            self._head_size = max(self._head_size, begun + len(data))
            if self._head_size > 2 * MAX_HEAD:
                self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._head_size > MAX_HEAD:
            self.scope.setdefault("state", {})[REFUSED] = HEAD_TOO_LARGE
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._cancel_deadline()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        if REFUSED in self.scope.get("state", {}):  # the mark is lost with the upgrade
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
