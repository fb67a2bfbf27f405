"""uvicorn's HTTP protocol with limits that an ASGI application, called after the head, cannot set.

A head that is not complete in time is answered 408 here, and the connection is closed. The
application refuses a slow body; the connection is closed `CLOSING_DELAY` later in any case. It is
also closed if a head exceeds twice `MAX_HEAD` bytes. A head beyond `MAX_HEAD`, and each request on
a connection beyond the limit, are marked, so that the application refuses them. On shutdown an idle
connection is closed `CLOSING_DELAY` later than by uvicorn, so that a request on its way is still
answered."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from serving.server.deadline import Deadline
from serving.server.slow_request import encode_last_reply, make_refusal

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
        self._deadline = Deadline(self.loop)
        self._head_size = 0  # bytes of the present request's head
        self._in_head = True

    # uvicorn declares the narrower type, too
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._over_limit = len(self.connections) > self._max_connections
        self._deadline.set(self.timeout_keep_alive, transport.close)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_size = 0
        self._in_head = True
        if self._over_limit:
            self.scope.setdefault("state", {})[REFUSED] = OVER_LIMIT
        self._deadline.set(self._request_timeout, self._refuse_slow_head)

    def data_received(self, data: bytes) -> None:
        head = self.scope  # uvicorn makes a new scope for each request
        begun = self._head_size
        super().data_received(data)
        if self._in_head and self.scope is head:  # all data belong to a head that is not complete
            self._head_size = max(self._head_size, begun + len(data))
            if self._head_size > 2 * MAX_HEAD:
                self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._deadline.set(self._request_timeout + CLOSING_DELAY, self.transport.close)
        if self._head_size > MAX_HEAD:
            self.scope.setdefault("state", {})[REFUSED] = HEAD_TOO_LARGE
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._deadline.clear()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        if REFUSED in self.scope.get("state", {}):  # the mark is lost with the upgrade
            self.transport.close()
        else:
            super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.clear()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        self.loop.call_later(CLOSING_DELAY if idle else 0.0, super().shutdown)

    def _refuse_slow_head(self) -> None:
        if self.cycle is None or self.cycle.response_complete:  # otherwise a reply is under way
            refusal = make_refusal("head", self._request_timeout)
            self.transport.write(encode_last_reply(refusal.reply()))
        self.transport.close()
