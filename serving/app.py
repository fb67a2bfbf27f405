"""create_app: the routes, the gateway around them, and one error format. Defines no route."""

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
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from serving.api import docs_page, open_inference, routes
from serving.api.openapi import document
from serving.models.service import Service, make_service
from serving.server.drain import drain_on_sigterm
from serving.server.gateway import Gateway, make_problem_reply
from serving.server.tracing import TracingMiddleware, configure_tracer
from serving.settings import Settings
from serving.version import VERSION
from serving.wire.problems import Code, Refusal, invalid

log = logging.getLogger("repertoire.serving")
SWITCH_INTERVAL = (
    0.0002  # s that a thread reading the store may delay a request; Python's default is 5 ms
)
HTTP_CODES: dict[int, Code] = {404: "not_found", 405: "method_not_allowed"}


def create_app(settings: Settings | None = None, tracer: Tracer | None = None) -> ASGIApp:
    """The service over one store, by default the environment's: `uvicorn --factory
    serving.app:create_app`."""
    gateway = make_gateway(settings or Settings())
    return enclose(gateway, tracer or configure_tracer())


def make_gateway(settings: Settings) -> Gateway:
    """The application without tracing and CORS."""
    service = make_service(settings)
    api = FastAPI(
        title="Repertoire",
        version=VERSION,
        docs_url=None,  # `docs_page` has one that needs no internet
        redoc_url=None,
        root_path_in_servers=False,  # the document's own server is relative
    )
    gateway = Gateway(api, service)
    api.router.lifespan_context = lambda _: _open(gateway)
    api.state.gateway = gateway
    api.state.service = service
    for router in (routes.router, open_inference.router, docs_page.router):
        api.include_router(router)
    api.add_exception_handler(Refusal, reply_to_refusal)
    api.add_exception_handler(HTTPException, reply_to_http_error)
    api.add_exception_handler(RequestValidationError, reply_to_invalid_path)
    api.add_exception_handler(ClientDisconnect, reply_to_disconnect)
    api.add_exception_handler(Exception, reply_to_defect)
    api.openapi = lambda: make_document(
        api
    )  # not cached: the examples follow the skill that is served
    return gateway


def enclose(gateway: Gateway, tracer: Tracer | None) -> ASGIApp:
    """The gateway, wrapped in tracing and CORS if environment or settings configure them."""
    app: ASGIApp = gateway
    if tracer is not None:
        app = TracingMiddleware(app, tracer)
    origins = gateway.service.settings.allowed_origins
    if origins:
        exposed = [
            "x-request-id",
            "x-skill-digest",
            "x-tensors",
            "x-fields",
            "retry-after",
            "server-timing",
        ]
        app = CORSMiddleware(
            app, origins, allow_methods=["*"], allow_headers=["*"], expose_headers=exposed
        )
    return app


@asynccontextmanager
async def _open(gateway: Gateway) -> AsyncIterator[None]:
    """Open the default skill before the first request. If that fails, the service starts anyway and
    /readyz reports the reason."""
    gateway.loop = asyncio.get_running_loop()
    service = gateway.service
    try:
        await service.get_default_skill()
    except Refusal as refusal:
        log.warning("not ready: %s", refusal)
    gc.unfreeze()  # the application before this one, after a SIGHUP
    gc.collect()
    # collections that scan the framework's own objects would cost requests some 15 ms each time
    gc.freeze()
    sys.setswitchinterval(SWITCH_INTERVAL)
    drain_on_sigterm(gateway, service.settings.drain)
    watching = asyncio.create_task(service.watch())
    watching.add_done_callback(log_end_of_watch)
    try:
        yield
    finally:
        watching.cancel()
        service.runner.threads.shutdown(wait=False)
        service.planners.close()
        service.metrics.close()


def log_end_of_watch(watching: asyncio.Task[None]) -> None:
    if not watching.cancelled():
        log.critical("the store is watched no more", exc_info=watching.exception())


def make_document(app: FastAPI) -> dict[str, Any]:
    service: Service = app.state.service
    return document(
        app, service.skills.get_open(service.settings.skill), service.controllers.get_last_used()
    )


async def reply_to_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error.reply(request.state.path).response()


async def reply_to_http_error(request: Request, error: Exception) -> Response:
    """Errors that the framework raises itself: no such route, no such method."""
    assert isinstance(error, HTTPException)
    code = HTTP_CODES.get(error.status_code, "http_error")
    message = f"{request.method} {request.state.path!a}: {error.detail}"
    response = (
        Refusal(error.status_code, code, message, None, "see /docs")
        .reply(request.state.path)
        .response()
    )
    response.headers.update(error.headers or {})  # Allow, for a 405
    return response


async def reply_to_disconnect(_: Request, __: Exception) -> Response:
    """The client disconnected before its whole body arrived; uvicorn drops this reply."""
    return Response(status_code=400)


async def reply_to_defect(request: Request, error: Exception) -> Response:
    """A defect, logged here with the request's id. Starlette raises it again."""
    return make_problem_reply(error, request.state.path, request.state.request_id).response()


async def reply_to_invalid_path(_: Request, error: Exception) -> Response:
    """A path parameter that the framework itself cannot read."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return invalid("wrong_type", str(first["msg"]), str(first["loc"][-1])).reply().response()
