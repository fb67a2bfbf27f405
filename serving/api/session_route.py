"""WS /session: the messages of a session, as text and as binary. What they mean is `session.py`'s business."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from serving.api.control_session import FLOAT32, Session, Step, opened
from serving.models.service import Service
from serving.wire import json
from serving.wire.problems import Refusal, invalid
from serving.wire.schemas import validated

log = logging.getLogger("repertoire.serving")
router = APIRouter()
BROKEN = 1011
SUBPROTOCOL = "bearer"


@router.websocket("/session")
async def session(socket: WebSocket) -> None:
    """One character's control loop; see `serving/api/control_session.py` for the messages."""
    service: Service = socket.app.state.service
    by_subprotocol = SUBPROTOCOL in socket.scope["subprotocols"]
    await socket.accept(SUBPROTOCOL if by_subprotocol else None)
    service.metrics.sessions.inc()
    try:
        found = await _open(socket, service)
        await _loop(socket, found, lambda: service.guard.spend(socket.scope["key"]))
    except WebSocketDisconnect:
        pass
    except Exception as error:
        log.error("a session failed", exc_info=error)
        await socket.close(BROKEN)
    finally:
        service.metrics.sessions.dec()


async def _open(socket: WebSocket, service: Service) -> Session:
    while True:
        message = await _received(socket)
        try:
            if message.get("text") is None:
                raise invalid("not_a_frame", "the first message says what to perform, as JSON text", None, "text")
            found = await opened(service, json.decode(message["text"].encode(), {}))
        except Refusal as refusal:
            await socket.send_text(refusal.problem.model_dump_json())
            continue
        await socket.send_text(_text(found.opened()))
        return found


async def _loop(socket: WebSocket, session: Session, spend: Callable[[], None]) -> None:
    while True:
        message = await _received(socket)
        given = message.get("text")
        answer = await _answer(session, spend, message.get("bytes") or b"" if given is None else given)
        await (socket.send_text(answer) if isinstance(answer, str) else socket.send_bytes(answer))


async def _answer(session: Session, spend: Callable[[], None], given: str | bytes) -> str | bytes:
    """Text for text, bytes for bytes; a Problem is text."""
    try:
        spend()  # a step counts as a request does
        if isinstance(given, str):
            return _text(await session.step(validated(Step, json.decode(given.encode(), {}))))
        targets = (await session.step(session.read(given)))["targets"]
        return np.ascontiguousarray(targets, FLOAT32).tobytes()
    except Refusal as refusal:
        await asyncio.sleep(refusal.hold)
        return refusal.problem.model_dump_json()


async def _received(socket: WebSocket) -> dict[str, Any]:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    return dict(message)


def _text(fields: dict[str, Any]) -> str:
    return json.encode(fields)[0].decode()
