"""Tracing: OpenTelemetry spans, if `OTEL_EXPORTER_OTLP_ENDPOINT` is set; no middleware without it.

The SDK is an extra (`repertoire[otel]`) and reads its own variables: OTEL_SERVICE_NAME,
OTEL_TRACES_SAMPLER, ..."""

from __future__ import annotations

import os

from opentelemetry import trace
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Tracer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def configure_tracer() -> Tracer | None:
    """The tracer of the environment; None without an endpoint. Raises ImportError where the SDK is
    not installed."""
    if ENDPOINT not in os.environ:
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.get_tracer("repertoire.serving")


class TracingMiddleware:
    """A span around each request, a child of the client's span, if any. Plain ASGI, around the
    gateway."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self.app = app
        self.tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        carried = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        name = f"{scope['method']} {scope['path']}"
        with self.tracer.start_as_current_span(name, extract(carried), SpanKind.SERVER) as span:

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            await self.app(scope, receive, watched)
            if route := getattr(scope.get("route"), "path", None):
                span.update_name(f"{scope['method']} {route}")
