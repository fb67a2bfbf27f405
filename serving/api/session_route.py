"""WS /session as plain ASGI: receives messages, text and binary, and sends the replies of
`control_session`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from serving.access.guard import KeyRemoved
from serving.access.keys import Key
from serving.api.control_session import Session, Step, open_session
from serving.models.service import Service
from serving.wire import json
from serving.wire.problems import Refusal, invalid
from serving.wire.raw import FLOAT32
from serving.wire.schemas import validate

log = logging.getLogger("repertoire.serving")
PATH = "/session"
BROKEN = 1011
LEFT = 1006
NOT_PERMITTED = 1008
SUBPROTOCOL = "bearer"


@dataclass(frozen=True)
class Socket:
    """The messages of one accepted connection."""

    receive: Receive
    send: Send

    async def read(self) -> str | bytes:
        """Raises WebSocketDisconnect when the client has left."""
        message = await self.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        text = message.get("text")
        return message.get("bytes") or b"" if text is None else text

    async def write(self, data: str | bytes) -> None:
        """Raises WebSocketDisconnect when the client has left; ASGI raises OSError for it."""
        kind = "text" if isinstance(data, str) else "bytes"
        try:
            await self.send({"type": "websocket.send", kind: data})
        except OSError as error:
            raise WebSocketDisconnect(LEFT) from error


async def serve_session(
    service: Service, scope: Scope, receive: Receive, send: Send, key: Key
) -> None:
    """One character's control loop, from the handshake to the end; each step counts against the
    rate of `key`. The session ends when that key is removed or replaced."""
    message = await receive()
    if message["type"] != "websocket.connect":
        return
    by_subprotocol = SUBPROTOCOL in scope["subprotocols"]
    subprotocol = SUBPROTOCOL if by_subprotocol else None
    await send({"type": "websocket.accept", "subprotocol": subprotocol, "headers": []})
    service.metrics.sessions.inc()
    socket = Socket(receive, send)
    try:
        session = await _open(socket, service, key)
        while True:
            message = await socket.read()
            await socket.write(await _answer(session, service.guard.spend, key, message))
    except WebSocketDisconnect:
        pass
    except KeyRemoved as removed:
        await send({"type": "websocket.close", "code": NOT_PERMITTED, "reason": str(removed)})
    except Exception as error:
        log.error("a session failed", exc_info=error)
        await send({"type": "websocket.close", "code": BROKEN, "reason": ""})
    finally:
        service.metrics.sessions.dec()


async def _open(socket: Socket, service: Service, key: Key) -> Session:
    """The session that the first valid message opens. The handshake counted the first message
    against the rate of `key`; each later one is counted here."""
    refused = False
    while True:
        message = await socket.read()
        try:
            if refused:
                service.guard.spend(key)
            if isinstance(message, bytes):
                raise invalid(
                    "not_a_frame",
                    "the first message says what to perform, as JSON text",
                    None,
                    "text",
                )
            session = await open_session(service, json.decode(message.encode(), {}))
        except Refusal as refusal:
            refused = True
            await asyncio.sleep(refusal.hold)
            await socket.write(refusal.problem.model_dump_json())
            continue
        await socket.write(_encode(session.describe()))
        return session


async def _answer(
    session: Session, spend: Callable[[Key], None], key: Key, message: str | bytes
) -> str | bytes:
    """Text for text, bytes for bytes; a Problem is text. Raises KeyRemoved."""
    try:
        spend(key)
        if isinstance(message, bytes):
            reply = await session.step(session.read(message))
            return np.ascontiguousarray(reply["targets"], FLOAT32).tobytes()
        return _encode(await session.step(validate(Step, json.decode(message.encode(), {}))))
    except Refusal as refusal:
        await asyncio.sleep(refusal.hold)
        return refusal.problem.model_dump_json()


def _encode(fields: dict[str, Any]) -> str:
    return json.encode(fields)[0].decode()
