"""The door: outermost around the app. Caps the body, and turns what nobody caught into a Problem and a log line."""

from __future__ import annotations

import logging
from uuid import uuid4

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.problems import Refusal

log = logging.getLogger("repertoire.serving")


class Door:
    """Plain ASGI, not `BaseHTTPMiddleware`: it costs no task and sees the body as it arrives."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self.app = app
        self.max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            self._refuse_announced(scope)
            await self.app(scope, self._capped(receive), watched_send)
        except ClientDisconnect:  # nobody is left to answer
            return None
        except Exception as error:
            response = self._answer(error, scope)
            if not started:  # otherwise half a reply is out, and only closing the connection is left
                await response(scope, receive, send)

    def _refuse_announced(self, scope: Scope) -> None:
        """A body that says it is too large is refused before a byte of it is read."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self.max_body:
                raise self._too_large()

    def _capped(self, receive: Receive) -> Receive:
        seen = 0

        async def capped() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.max_body:
                raise self._too_large()
            return message

        return capped

    def _too_large(self) -> Refusal:
        return Refusal(413, "body_too_large", "the body is too large", None, f"at most {self.max_body} bytes")

    def _answer(self, error: Exception, scope: Scope) -> Response:
        if isinstance(error, Refusal):
            return error.response()
        request_id = uuid4().hex[:12]
        log.error("request %s: %s %s failed", request_id, scope["method"], ascii(scope["path"]), exc_info=error)
        message = f"this is a defect of the service; its log names the cause under request id {request_id}"
        response = Refusal(500, "internal_error", message).response()
        response.headers["x-request-id"] = request_id
        return response
