"""Connection: uvicorn's own, with two things more. Clients that are slow or too many are cut off; and a whole, plain
request for a hot route is answered without the framework, which costs a good part of the time of such a request.

Anything else about a request (another route, chunks, `Expect`, an upgrade, a query, pipelining) goes the usual way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from serving.door import Door
from serving.hot import Hot
from serving.problems import Code, Refusal
from serving.reply import Reply

LARGEST = 2**20  # bytes of a body that is gathered here; a longer one is capped and counted as it arrives
UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"content-encoding"})


@dataclass(frozen=True)
class Front:
    """What the app's lifespan hands to its connections, under the name `front`."""

    hot: Hot | None  # None: every request goes the usual way
    door: Door
    max_connections: int
    request_timeout: float  # s


class Exchange:
    """A request that is answered here, in the place of uvicorn's own cycle: it reads and sets these."""

    def __init__(
        self,
        path: str,
        route: str,
        headers: dict[bytes, bytes],
        work: Callable[[bytes], Awaitable[Reply]],
        keep_alive: bool,
    ) -> None:
        self.path, self.route, self.headers, self.work = path, route, headers, work
        self.keep_alive = keep_alive
        self.body = bytearray()
        self.more_body = True
        self.response_complete = False
        self.disconnected = False
        self.message_event = asyncio.Event()


class Connection(HttpToolsProtocol):
    def __init__(self, *how: Any, **named: Any) -> None:
        super().__init__(*how, **named)
        self.front: Front = self.app_state["front"]
        self.slow: asyncio.TimerHandle | None = None
        self.receiving = True  # a request is not here as a whole yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.front.max_connections:
            self._cut(503, "overloaded", f"{self.front.max_connections} connections are open already", retry_after=1)
        self.slow = self.loop.call_later(self.front.request_timeout, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # A timer for those only that do not come whole: a request in one packet costs none.
        if not self.receiving:
            self._in_time()
        elif self.slow is None:
            self.slow = self.loop.call_later(self.front.request_timeout, self._too_slow)

    def on_message_begin(self) -> None:
        self.receiving = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        exchange = self._plain(self.front.hot) if self.front.hot is not None else None
        if exchange is None:
            super().on_headers_complete()
        else:
            self.cycle = exchange  # type: ignore[assignment]  # it has what the base class asks of a cycle

    def on_body(self, body: bytes) -> None:
        if isinstance(self.cycle, Exchange):
            self.cycle.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self.receiving = False
        if isinstance(self.cycle, Exchange):
            task = self.loop.create_task(self._answer(self.cycle))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        else:
            super().on_message_complete()

    def _plain(self, hot: Hot) -> Exchange | None:
        """The exchange, if the request is one that can be answered here."""
        parser = self.parser
        assert parser is not None  # it is, until the connection is lost
        if parser.get_method() != b"POST" or self.expect_100_continue:
            return None
        if self.cycle is not None and not self.cycle.response_complete:
            return None
        path = self.url.decode("ascii", "replace")
        route = hot.route(path)
        if route is None or "%" in path or "?" in path:
            return None
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"")
        if len(headers) != len(self.headers) or not headers.keys().isdisjoint(UNUSUAL):
            return None
        if not length.isdigit() or int(length) > min(LARGEST, self.front.door.max_body):
            return None
        keep_alive = parser.get_http_version() == "1.1" and parser.should_keep_alive()
        work = partial(hot.answer, path, headers)
        return Exchange(path, route, headers, work, keep_alive and not self.front.door.draining)

    async def _answer(self, exchange: Exchange) -> None:
        body = bytes(exchange.body)
        reply = await self.front.door.answer(
            exchange.path, exchange.route, exchange.headers, lambda: exchange.work(body)
        )
        exchange.response_complete = True
        if not exchange.disconnected:
            self._write(reply, exchange.keep_alive)
            self.on_response_complete()

    def _write(self, reply: Reply, keep_alive: bool) -> None:
        lines = [STATUS_LINE[reply.status]]
        for name, value in (*self.server_state.default_headers, *reply.headers):
            lines += (name, b": ", value, b"\r\n")
        lines.append(b"content-length: %d\r\n" % len(reply.body))
        lines.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        lines.append(reply.body)
        self.transport.write(b"".join(lines))
        if not keep_alive:
            self.transport.close()

    def _too_slow(self) -> None:
        self._cut(408, "too_slow", f"the request did not arrive within {self.front.request_timeout:g} s")

    def _in_time(self) -> None:
        if self.slow is not None:
            self.slow.cancel()
            self.slow = None

    def _cut(self, status: int, code: Code, message: str, retry_after: int | None = None) -> None:
        if self.transport.is_closing():
            return
        if (
            self.cycle is None or self.cycle.response_complete or isinstance(self.cycle, Exchange)
        ):  # else half of another reply may be out
            self._write(Refusal(status, code, message, retry_after=retry_after).reply(), keep_alive=False)
        self.transport.close()
