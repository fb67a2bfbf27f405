"""Channel: uvicorn's own WebSocket, with one thing more. A whole binary frame of an open session, which is what a control
loop sends 30 times a second, is answered without the framework and its queues.

Anything else (text, fragments, compression, control frames, a frame in pieces, several at once) goes the usual way, and
comes to the same function in `sessions.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import apply_mask  # pyright: ignore[reportPrivateImportUsage]  # in C, where there is that
from websockets.http11 import Request
from websockets.protocol import State

from serving.vigil import Vigil

log = logging.getLogger("repertoire.serving")
BINARY, TEXT = 0x82, 0x81  # whole messages, without extensions
MASKED = 0x80
BROKEN = 1011
Answers = Callable[[bytes], Awaitable[str | bytes]]


class Channel(WebSocketsSansIOProtocol):
    def __init__(self, *how: Any, **named: Any) -> None:
        super().__init__(*how, **named)
        self.vigil: Vigil = self.app_state["front"].vigil
        self.answers: Answers | None = None  # set by the route, once the session is open
        self.asked = False  # the app waits for a message, and so has answered the one before
        self.busy = False  # a frame is being answered here
        self.early = b""  # what arrived meanwhile

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["channel"] = self  # type: ignore[typeddict-unknown-key]  # the app has not seen it yet

    async def receive(self) -> ASGIReceiveEvent:
        self.asked = True
        try:
            return await super().receive()
        finally:
            self.asked = False

    def data_received(self, data: bytes) -> None:
        if self.busy:
            self.early += data
            self.transport.pause_reading()
            return
        answers = self.answers
        payload = whole(data) if answers is not None and self._idle() else None
        if answers is None or payload is None:
            super().data_received(data)
            return
        self.busy = True
        self.vigil.asked(self)
        task = self.loop.create_task(self._answer(answers, payload))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _idle(self) -> bool:
        """Nothing is under way the usual way: no message at the app or on its way there, and no part of one."""
        conn, waiting = self.conn, self.asked and self.queue.empty()
        return waiting and not self.frames and not conn.reader.buffer and conn.state is State.OPEN

    async def _answer(self, answers: Answers, payload: bytes) -> None:
        try:
            await self.writable.wait()
            reply = await answers(payload)
        except Exception as error:
            log.error("a session failed", exc_info=error)
            self.conn.fail(BROKEN)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
            return
        if self.conn.state is State.OPEN and not self.transport.is_closing():
            self.transport.write(framed(reply))
        self.vigil.answered(self, self.loop)
        self.busy = False
        if self.early and not self.transport.is_closing():
            data, self.early = self.early, b""
            self.transport.resume_reading()
            self.data_received(data)


def whole(data: bytes) -> bytes | None:
    """The payload, if this is one whole binary frame of a client, and nothing else."""
    if len(data) < 6 or data[0] != BINARY or not data[1] & MASKED:
        return None
    size, start = data[1] & ~MASKED, 2
    if size == 126:
        size, start = int.from_bytes(data[2:4], "big"), 4
    if size == 127 or len(data) != start + 4 + size:
        return None
    return apply_mask(data[start + 4 :], data[start : start + 4])


def framed(reply: str | bytes) -> bytes:
    """The frame of a server that holds this reply."""
    kind, payload = (TEXT, reply.encode()) if isinstance(reply, str) else (BINARY, reply)
    size = len(payload)
    if size < 126:
        return bytes((kind, size)) + payload
    length = b"\x7e" + size.to_bytes(2, "big") if size < 2**16 else b"\x7f" + size.to_bytes(8, "big")
    return bytes((kind,)) + length + payload
