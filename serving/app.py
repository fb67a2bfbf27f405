"""create_app: the routes, the door around them, and one shape for whatever goes wrong. Holds no route itself."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from opentelemetry.trace import Tracer
from starlette.exceptions import HTTPException

from serving import inference, routes, sessions
from serving.connection import Front
from serving.door import Door, Enclosed
from serving.drain import drain_on_sigterm
from serving.hot import Hot
from serving.openapi import document
from serving.problems import Code, Refusal, invalid
from serving.service import Service, make_service
from serving.settings import Settings
from serving.tracing import Traced, configured

log = logging.getLogger("repertoire.serving")
YIELD = 0.0002  # s for which a thread that reads the store may keep a request waiting; Python would let it for 5 ms
HTTP_CODES: dict[int, Code] = {404: "not_found", 405: "method_not_allowed"}


def create_app(settings: Settings | None = None, tracer: Tracer | None = None) -> FastAPI:
    """The service over one store, by default the environment's: `uvicorn --factory serving.app:create_app`."""
    settings, tracer = settings or Settings(), tracer or configured()
    service = make_service(settings)
    door = Door(service.guard, service.metrics, settings.max_body, settings.access_log)
    hot = Hot(service)
    # A trace wants every request to pass through the app.
    front = Front(hot if tracer is None else None, door, settings.max_connections, settings.request_timeout)
    app = FastAPI(title="Repertoire", version="0.1.0", lifespan=lambda _: _opened(service, front))
    app.state.service, app.state.hot, app.state.front = service, hot, front
    for router in (routes.router, inference.router, sessions.router):
        app.include_router(router)
    if tracer is not None:
        app.add_middleware(Traced, tracer=tracer)
    app.add_middleware(Enclosed, door=door)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _unvalidated)
    app.openapi = lambda: _document(app)  # not cached: the examples follow the skill that is served
    return app


@asynccontextmanager
async def _opened(service: Service, front: Front) -> AsyncIterator[dict[str, Any]]:
    """Open the default skill before the first request. Where that fails, the service starts and /readyz says why."""
    try:
        await service.default()
    except Refusal as refusal:
        log.warning("not ready: %s", refusal)
    gc.collect()
    gc.freeze()  # the framework's own objects: looking through them again and again costs requests some 15 ms each time
    sys.setswitchinterval(YIELD)
    drain_on_sigterm(front.door, service.settings.drain)
    watching = asyncio.create_task(service.watch())
    watching.add_done_callback(_ended)
    try:
        yield {"front": front}
    finally:
        watching.cancel()
        service.engine.threads.shutdown(wait=False)
        service.metrics.close()


def _ended(watching: asyncio.Task[None]) -> None:
    if not watching.cancelled():
        log.critical("the store is watched no more", exc_info=watching.exception())


def _document(app: FastAPI) -> dict[str, Any]:
    service: Service = app.state.service
    return document(app, service.skills.now(service.settings.skill), service.controllers.recent())


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error.reply(request.url.path).response()


async def _http(request: Request, error: Exception) -> Response:
    """What the framework refuses by itself: no such route, no such method."""
    assert isinstance(error, HTTPException)
    code = HTTP_CODES.get(error.status_code, "http_error")
    message = f"{request.method} {request.url.path!a}: {error.detail}"
    response = Refusal(error.status_code, code, message, None, "see /docs").reply(request.url.path).response()
    response.headers.update(error.headers or {})  # Allow, for a 405
    return response


async def _unvalidated(_: Request, error: Exception) -> Response:
    """A path parameter that the framework itself cannot read."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return invalid("wrong_type", str(first["msg"]), str(first["loc"][-1])).reply().response()
