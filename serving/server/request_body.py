"""Limits on a request's body: its size, before and after decompression, and the time it takes to
arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from serving.server.slow_request import make_refusal
from serving.wire.compression import decompress
from serving.wire.problems import Refusal

Headers = Mapping[bytes, bytes]
ENCODING = b"content-encoding"


@dataclass(frozen=True)
class BodyReader:
    max_body: int  # bytes, compressed and decompressed
    timeout: float  # s from the end of the head to the end of the body

    async def read(self, receive: Receive, headers: Headers) -> bytes:
        """The whole body, decompressed. Raises Refusal: 408, 413, 415 or 422; and
        ClientDisconnect."""
        self._check_announced(headers)
        try:
            async with asyncio.timeout(self.timeout):
                body = await self._gather(receive)
        except TimeoutError:
            raise make_refusal("body", self.timeout) from None
        encoding = headers.get(ENCODING)
        return body if encoding is None else decompress(body, encoding, self.max_body)

    async def limit(self, scope: Scope, receive: Receive, headers: Headers) -> Receive:
        """A `receive` with the same limits, for an application that reads the body by itself.

        A compressed body is read here; the headers in `scope` then describe the decompressed one.
        """
        if ENCODING not in headers:
            self._check_announced(headers)
            return self._capped(receive)
        body = await self.read(receive, headers)
        described = {b"content-encoding", b"content-length", b"transfer-encoding"}
        kept = [(name, value) for name, value in scope["headers"] if name not in described]
        scope["headers"] = [*kept, (b"content-length", b"%d" % len(body))]
        return replay(body, receive)

    async def _gather(self, receive: Receive) -> bytes:
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            body: bytes = message.get("body", b"")  # in one packet, as nearly all are
            if len(body) > self.max_body:
                raise self._too_large()
            return body
        parts: list[bytes] = []
        size = 0
        while message["type"] == "http.request":
            part = message.get("body", b"")
            size += len(part)
            if size > self.max_body:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body"):
                return b"".join(parts)
            message = await receive()
        raise ClientDisconnect

    def _capped(self, receive: Receive) -> Receive:
        received = 0
        complete = False
        deadline = asyncio.get_running_loop().time() + self.timeout

        async def capped() -> Message:
            nonlocal received, complete
            if complete:  # the next message is the disconnect, at any time
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise make_refusal("body", self.timeout) from None
            received += len(message.get("body", b""))
            complete = not message.get("more_body")
            if received > self.max_body:
                raise self._too_large()
            return message

        return capped

    def _check_announced(self, headers: Headers) -> None:
        """Refuse a body whose Content-Length is too large before reading it."""
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self.max_body:
            raise self._too_large()

    def _too_large(self) -> Refusal:
        return Refusal(
            413, "body_too_large", "the body is too large", None, f"at most {self.max_body} bytes"
        )


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives `body` first, then whatever `receive` gives."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Message:
        return messages.pop() if messages else await receive()

    return receive_body
