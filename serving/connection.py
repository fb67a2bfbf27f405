"""Connection: uvicorn's own, with three things more. Clients that are slow or too many are cut off; a request that meets
the end of the process is answered; and a whole, plain request for a hot route is answered without the framework, which
costs a good part of the time of such a request.

Anything else about a request (another route, chunks, `Expect`, an upgrade, a query, pipelining) goes the usual way. A head
that was answered here once, byte for byte, is not parsed again: control loops send the same one all their life.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from serving.door import Door
from serving.hot import Hot
from serving.problems import Code, Refusal
from serving.reply import Reply
from serving.vigil import Vigil

LARGEST = 2**20  # bytes of a body that is gathered here; a longer one is capped and counted as it arrives
UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"content-encoding"})
END = b"\r\n\r\n"  # of a head
LONGEST_HEAD = 2048  # bytes of a head that is remembered
MOST_HEADS = 1024
PATIENCE = 1.0  # s, at the end, for a request that is on its way


@dataclass(frozen=True, slots=True)
class Head:
    """Of a request that can be answered here."""

    path: str
    route: str
    headers: dict[bytes, bytes]
    length: int  # of the body
    keep_alive: bool


@dataclass(frozen=True)
class Front:
    """What the app's lifespan hands to its connections, under the name `front`."""

    hot: Hot | None  # None: every request goes the usual way
    door: Door
    max_connections: int
    request_timeout: float  # s
    vigil: Vigil = field(default_factory=Vigil)
    heads: dict[bytes, Head] = field(default_factory=dict)  # those seen lately, by their bytes

    def remember(self, raw: bytes, head: Head) -> None:
        if len(self.heads) >= MOST_HEADS:
            self.heads.clear()
        self.heads[raw] = head


class Never:
    """Stands for the event by which uvicorn wakes an app that waits for more of a body."""

    def set(self) -> None:
        pass


class Exchange:
    """A request that is answered here, in the place of uvicorn's own cycle: it reads and sets these."""

    message_event = Never()

    def __init__(self, head: Head, keep_alive: bool, body: bytes = b"") -> None:
        self.head, self.body = head, body
        self.keep_alive = keep_alive
        self.more_body = True
        self.response_complete = False
        self.disconnected = False
        self.task: asyncio.Task[None]


class Connection(HttpToolsProtocol):
    def __init__(self, *how: Any, **named: Any) -> None:
        super().__init__(*how, **named)
        self.front: Front = self.app_state["front"]
        self.slow: asyncio.TimerHandle | None = None
        self.receiving = True  # a request is not here as a whole yet
        self.between = True  # not a byte of another request is here
        self.fresh = b""  # what was received just now, if a request begins with it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.front.max_connections:
            self._cut(503, "overloaded", f"{self.front.max_connections} connections are open already", retry_after=1)
        self.slow = self.loop.call_later(self.front.request_timeout, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Called once this process listens no more. A connection on which nothing is asked has a while to ask, for what is
        closed with a request in its buffer, or on the way there, is reset. The answer asks its client to connect anew."""
        self.front.door.draining = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(PATIENCE, self._end_if_silent)
        else:
            self.cycle.keep_alive = False

    def _end_if_silent(self) -> None:
        if self.between and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        begins = self.between and (self.cycle is None or self.cycle.response_complete)
        if begins and (exchange := self._known(data)):
            self._unset_keepalive_if_required()
            self._in_time()
            self._start(exchange)
            return
        self.fresh = data if begins else b""
        super().data_received(data)
        self.fresh, self.between = b"", not self.receiving
        # A timer for those only that do not come whole: a request in one packet costs none.
        if not self.receiving:
            self._in_time()
        elif self.slow is None:
            self.slow = self.loop.call_later(self.front.request_timeout, self._too_slow)

    def on_message_begin(self) -> None:
        self.receiving = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        head = self._plain(self.front.hot) if self.front.hot is not None else None
        if head is None:
            self.fresh = b""
            super().on_headers_complete()
            return
        self.cycle = Exchange(head, self._kept(head))  # type: ignore[assignment]  # it has what the base asks of a cycle
        end = self.fresh.find(END) + len(END)
        if len(END) <= end <= LONGEST_HEAD:
            self.front.remember(self.fresh[:end], head)
        self.fresh = b""  # a second request of the same packet begins elsewhere

    def on_body(self, body: bytes) -> None:
        if isinstance(self.cycle, Exchange):
            self.cycle.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self.receiving = False
        if isinstance(self.cycle, Exchange):
            self._start(self.cycle)
        else:
            super().on_message_complete()

    def _known(self, data: bytes) -> Exchange | None:
        """The exchange, if this is one whole request, and its head was seen before."""
        end = data.find(END, 0, LONGEST_HEAD) + len(END)
        head = self.front.heads.get(data[:end])
        if head is None or len(data) != end + head.length:
            return None
        return Exchange(head, self._kept(head), data[end:])

    def _plain(self, hot: Hot) -> Head | None:
        """The head, if the request is one that can be answered here."""
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
        return Head(path, route, headers, int(length), keep_alive)

    def _kept(self, head: Head) -> bool:
        return head.keep_alive and not self.front.door.draining

    def _start(self, exchange: Exchange) -> None:
        self.front.vigil.asked(self)
        self.cycle = exchange  # type: ignore[assignment]
        task = self.loop.create_task(self._answer(exchange))
        self.tasks.add(task)  # uvicorn waits for them before it ends
        exchange.task = task

    async def _answer(self, exchange: Exchange) -> None:
        front, head = self.front, exchange.head
        assert front.hot is not None
        work = partial(front.hot.answer, head.path, head.headers, exchange.body)
        await front.door.answer(head.path, head.route, head.headers, work, partial(self._send, exchange))
        front.vigil.answered(self, self.loop)
        self.tasks.discard(exchange.task)  # a callback would cost another turn of the loop

    def _send(self, exchange: Exchange, reply: Reply) -> None:
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
