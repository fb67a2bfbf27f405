"""The door: outermost around the app. Lets in, caps the body, and answers with one shape for whatever goes wrong.

Every request has an id, in its reply and in the log; a client may bring its own.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from time import perf_counter
from uuid import uuid4

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from serving.guard import Guard
from serving.metrics import Metrics
from serving.problems import Refusal
from serving.reply import Reply

log = logging.getLogger("repertoire.serving")
access = logging.getLogger("repertoire.access")
OWN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Door:
    """What every request passes, over HTTP through `Enclosed`, or from the connection itself."""

    def __init__(self, guard: Guard, metrics: Metrics, max_body: int, log_access: bool) -> None:
        self.guard = guard
        self.metrics = metrics
        self.max_body = max_body
        self.draining = False  # replies ask their clients to connect anew, elsewhere
        self._log_access = log_access
        self._prefix, self._count = uuid4().hex[:8], count(1)

    def request_id(self, headers: Mapping[bytes, bytes]) -> bytes:
        brought = headers.get(b"x-request-id")
        if brought is not None and OWN_ID.fullmatch(brought):
            return brought
        return b"%s-%x" % (self._prefix.encode(), next(self._count))

    async def answer(
        self,
        path: str,
        route: str,
        headers: Mapping[bytes, bytes],
        work: Callable[[], Awaitable[Reply]],
        send: Callable[[Reply], None],
    ) -> None:
        """Send the reply of `work`, if the guard lets this request in; a Problem in any other case."""
        started, request_id, who = perf_counter(), self.request_id(headers), ""
        try:
            who = self.guard.admit(path, headers)
            reply = await work()
        except Exception as error:
            started += await held(error)  # not the service's own time
            reply = self.problem(error, path, request_id)
        seconds = perf_counter() - started
        send(Reply(reply.status, reply.body, (*reply.headers, (b"x-request-id", request_id))))
        self.over(route, reply.status, seconds, request_id, who)  # counted while the client reads

    def problem(self, error: Exception, path: str, request_id: bytes) -> Reply:
        if not isinstance(error, Refusal):
            shown = request_id.decode()
            log.error("request %s: %s failed", shown, ascii(path), exc_info=error, extra={"request_id": shown})
            message = f"this is a defect of the service; its log names the cause under request id {shown}"
            error = Refusal(500, "internal_error", message)
        return error.reply(path)

    def over(self, route: str, status: int, seconds: float, request_id: bytes, who: str) -> None:
        self.metrics.answered(route, status, seconds)
        if self._log_access:
            fields = {"request_id": request_id.decode(), "route": route, "status": status, "key": who}
            access.info("%s %d", route, status, extra=fields | {"ms": round(seconds * 1000, 3)})

    def too_large(self) -> Refusal:
        return Refusal(413, "body_too_large", "the body is too large", None, f"at most {self.max_body} bytes")


async def held(error: Exception) -> float:
    """Keep a refusal back for as long as it says; the seconds that took. A client that asks again as soon as it is refused
    would cost the others as much as if it was served."""
    seconds = error.hold if isinstance(error, Refusal) else 0.0
    if seconds:
        await asyncio.sleep(seconds)
    return seconds


class Enclosed:
    """Plain ASGI, not `BaseHTTPMiddleware`: it costs no task and sees the body as it arrives."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app = app
        self.door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            return await self._session(scope, receive, send)
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers, started, status, who = dict(scope["headers"]), perf_counter(), 0, ""
        request_id = self.door.request_id(headers)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id)]
            await send(message)

        try:
            who = self.door.guard.admit(scope["path"], headers)
            self._refuse_announced(headers)
            await self.app(scope, self._capped(receive), watched)
        except ClientDisconnect:  # nobody is left to answer
            return None
        except Exception as error:
            started += await held(error)
            reply = self.door.problem(error, scope["path"], request_id)
            if not status:  # otherwise half a reply is out, and only closing the connection is left
                await reply.response()(scope, receive, watched)
        route = getattr(scope.get("route"), "path", "other")
        self.door.over(route, status, perf_counter() - started, request_id, who)

    async def _session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket is let in or not as a whole; a page of another origin never is, for browsers do not ask."""
        headers = dict(scope["headers"])
        try:
            scope["key"] = self.door.guard.admit(scope["path"], headers)
            origin = headers.get(b"origin", b"").partition(b"//")[2]
            if origin and origin != headers.get(b"host"):
                raise Refusal(403, "not_permitted", "a page of another origin may not open a session", "origin")
        except Refusal as refusal:
            return await WebSocket(scope, receive, send).send_denial_response(refusal.reply().response())
        await self.app(scope, receive, send)

    def _refuse_announced(self, headers: Mapping[bytes, bytes]) -> None:
        """A body that says it is too large is refused before a byte of it is read."""
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self.door.max_body:
            raise self.door.too_large()

    def _capped(self, receive: Receive) -> Receive:
        seen = 0

        async def capped() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.door.max_body:
                raise self.door.too_large()
            return message

        return capped
