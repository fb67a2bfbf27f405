"""The ASGI application that every request passes: access, limits, one error format, metrics.

The two routes of a control loop (`serving.api.fast_routes`) are answered here, before FastAPI,
whose routing costs more than their own work. All other requests go on to FastAPI. Only public ASGI
is used: requests come parsed from the server."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import count
from time import perf_counter
from uuid import uuid4

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from serving.access.guard import OPEN, Guard, wait_before_refusal
from serving.access.keys import Key
from serving.access.origins import Origins, admitted_hosts
from serving.access.root_path import RootPath
from serving.api import session_route
from serving.api.fast_routes import FastRoute, find_fast_route
from serving.models.metrics import Metrics
from serving.models.service import Service
from serving.server.connection_limits import HEAD_TOO_LARGE, MAX_HEAD, OVER_LIMIT, REFUSED
from serving.server.request_body import BodyReader
from serving.wire.problems import Refusal, quoted
from serving.wire.reply import Reply

log = logging.getLogger("repertoire.serving")
access_log = logging.getLogger("repertoire.access")
CLIENT_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
CLOSE = (b"connection", b"close")
READING = ("GET", "HEAD", "OPTIONS")  # methods that change and compute nothing
NOT_READ_WHOLE = (408, 413, 431)  # then close: the unread part is not the next request


class Gateway:
    """ASGI callable around the FastAPI application `api`."""

    def __init__(self, api: FastAPI, service: Service) -> None:
        settings = service.settings
        self.api = api
        self.service = service
        self.loop: asyncio.AbstractEventLoop | None = None  # None until the application starts
        self.draining = False  # every reply then has `connection: close`
        self._guard: Guard = service.guard
        self._metrics: Metrics = service.metrics
        hosts = admitted_hosts(settings.allowed_hosts, settings.host, settings.keys is not None)
        self._origins = Origins(hosts, frozenset(settings.allowed_origins))
        self._root_path = RootPath(settings.root_path, settings.trusted_proxies)
        self._body = BodyReader(settings.max_body, settings.request_timeout)
        self._log_access = settings.access_log
        self._id_prefix = uuid4().hex[:8].encode()
        self._ids = count(1)

    def drain(self, seconds: float, end: Callable[[], object]) -> None:
        """Ask clients to reconnect elsewhere, and call `end` after `seconds`. Safe in a signal
        handler."""
        self.draining = True
        loop = self.loop
        assert loop is not None
        loop.call_soon_threadsafe(loop.call_later, seconds, end)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            path = self._root_path.apply(scope, headers)
            route = find_fast_route(path) if scope["method"] == "POST" else None
            if route is not None:
                scope["route"] = route  # FastAPI stores its route under this key, too
                await self._answer(scope, path, headers, receive, send)
            else:
                # The server drops the reply's body for HEAD, so FastAPI gets a GET.
                as_get = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
                await self._pass_on(as_get, path, headers, receive, send)
        elif scope["type"] == "websocket":
            await self._open_session(scope, receive, send)
        else:
            await self.api(scope, receive, send)

    async def _answer(
        self, scope: Scope, path: str, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        """One request of a fast route, from its head to the last byte of the reply."""
        started = perf_counter()
        route: FastRoute = scope["route"]
        request_id = self._make_request_id(headers)
        key_name = ""
        try:
            key_name = self._admit(scope, path, headers).name
            body = await self._body.read(receive, headers)
            reply = await route.answer(self.service, headers, body)
        except ClientDisconnect:
            return
        except Exception as error:
            started += await wait_before_refusal(error)  # not part of the service's own time
            reply = make_problem_reply(error, path, request_id)
        await self._send(reply, request_id, send)
        seconds = perf_counter() - started
        self._record(route.path, reply.status, seconds, request_id, key_name)

    async def _send(self, reply: Reply, request_id: bytes, send: Send) -> None:
        headers = [
            *reply.headers,
            (b"content-length", b"%d" % len(reply.body)),
            (b"x-request-id", request_id),
        ]
        if self.draining or reply.status in NOT_READ_WHOLE:
            headers.append(CLOSE)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    async def _pass_on(
        self, scope: Scope, path: str, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        """A request for FastAPI, with the same checks before it and the same record after it."""
        started = perf_counter()
        request_id = self._make_request_id(headers)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        state["path"] = path
        key_name = ""
        status = 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                closing = self.draining or status in NOT_READ_WHOLE
                added = (
                    [(b"x-request-id", request_id), CLOSE]
                    if closing
                    else [(b"x-request-id", request_id)]
                )
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        try:
            key_name = self._admit(scope, path, headers).name
            limited = await self._body.limit(scope, receive, headers)
            await self.api(scope, limited, send_and_note)
        except ClientDisconnect:
            return
        except Exception as error:
            if status and status < 500:  # in the middle of a reply, which no handler sees
                log_defect(error, path, request_id)
            if not status:  # otherwise the reply is sent, by FastAPI's own handlers
                started += await wait_before_refusal(error)
                reply = make_problem_reply(error, path, request_id)
                await reply.response()(scope, receive, send_and_note)
        route = getattr(scope.get("route"), "path", "other")
        self._record(route, status, perf_counter() - started, request_id, key_name)

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit or refuse a WebSocket as a whole: browsers apply no same-origin policy to it."""
        headers = with_key_of_subprotocol(dict(scope["headers"]), scope["subprotocols"])
        path = self._root_path.apply(scope, headers)
        started = perf_counter()
        try:
            key = self._admit(scope, path, headers)
            check_session_path(path)
        except Refusal as refusal:
            started += await wait_before_refusal(refusal)
            request_id = self._make_request_id(headers)
            response = refusal.with_header(b"x-request-id", request_id).reply().response()
            await WebSocket(scope, receive, send).send_denial_response(response)
            route = path if path == session_route.PATH else "other"
            self._record(route, refusal.status, perf_counter() - started, request_id, "")
            return
        await session_route.serve_session(self.service, scope, receive, send, key)

    def _admit(self, scope: Scope, path: str, headers: Mapping[bytes, bytes]) -> Key:
        """The key of a request, or of a WebSocket, that may go on. Raises Refusal."""
        check_connections(scope)
        if self.service.settings.keys is None and path not in OPEN:
            check_address(scope)
        self._origins.check_host(headers)
        if scope["type"] == "websocket" or scope["method"] not in READING:
            self._origins.check_origin(headers)
        return self._guard.admit(path, headers)

    def _make_request_id(self, headers: Mapping[bytes, bytes]) -> bytes:
        """The client's own id, or one of this process."""
        client_id = headers.get(b"x-request-id")
        if client_id is not None and CLIENT_ID.fullmatch(client_id):
            return client_id
        return b"%s-%x" % (self._id_prefix, next(self._ids))

    def _record(
        self, route: str, status: int, seconds: float, request_id: bytes, key_name: str
    ) -> None:
        self._metrics.count_request(route, status, seconds)
        if self._log_access:
            fields = {
                "request_id": request_id.decode(),
                "route": route,
                "status": status,
                "key": key_name,
                "ms": round(seconds * 1000, 3),
            }
            access_log.info("%s %d", route, status, extra=fields)


def check_session_path(path: str) -> None:
    """Raises Refusal for a WebSocket at another path than that of sessions."""
    if path != session_route.PATH:
        message = f"no WebSocket at {quoted(path)}; there is: {session_route.PATH}"
        raise Refusal(404, "not_found", message, None, session_route.PATH)


def check_connections(scope: Scope) -> None:
    """Raises Refusal for a request marked by `connection_limits`. A WebSocket is never marked."""
    reason = scope.get("state", {}).get(REFUSED)
    if reason == HEAD_TOO_LARGE:
        raise Refusal(
            431, "head_too_large", "the headers are too large", None, f"at most {MAX_HEAD} bytes"
        )
    if reason == OVER_LIMIT:
        message = "this process has as many open connections as it takes"
        # The mark stays with the connection, so another one is needed.
        refusal = Refusal(503, "overloaded", message, None, "the same, later", retry_after=1)
        raise refusal.with_header(*CLOSE)


def check_address(scope: Scope) -> None:
    """Raises Refusal for a request on an address that other machines reach. `Settings` refuses such
    a host without keys, but another server may listen elsewhere."""
    address = (scope.get("server") or ("",))[0]
    if is_reachable(address):
        message = f"without a key file this service answers on loopback addresses, not {address}"
        raise Refusal(403, "not_permitted", message, None, "a key file in REPERTOIRE_KEYS")


@lru_cache(16)  # on every request, and a process listens on few addresses
def is_reachable(address: str) -> bool:
    """Whether other machines reach `address`; False for a Unix socket and for a name."""
    try:
        return not ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def make_problem_reply(error: Exception, path: str, request_id: bytes) -> Reply:
    """The reply to a failed request: its Problem, or status 500 and a line in the log."""
    if isinstance(error, Refusal):
        return error.reply(path)
    log_defect(error, path, request_id)
    message = (
        "this is a defect of the service; its log names the cause under request id "
        f"{request_id.decode()}"
    )
    return Refusal(500, "internal_error", message).reply(path)


def log_defect(error: Exception, path: str, request_id: bytes) -> None:
    decoded = request_id.decode()
    log.error(
        "request %s: %s failed", decoded, ascii(path), exc_info=error, extra={"request_id": decoded}
    )


def with_key_of_subprotocol(
    headers: Mapping[bytes, bytes], offered: list[str]
) -> Mapping[bytes, bytes]:
    """Browsers send no `Authorization` with a WebSocket: `Sec-WebSocket-Protocol: bearer, KEY`
    stands for it."""
    if b"authorization" in headers or len(offered) != 2 or offered[0] != "bearer":
        return headers
    return {**headers, b"authorization": b"Bearer " + offered[1].encode("latin-1")}
