"""Traces: a span per request with its route and status, a child of the client's own; none without
an endpoint."""

import json

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from serving.server.tracing import configure_tracer
from serving.settings import Settings
from tests.serving.local import Local, skill_rows, state_rows

BODY = json.dumps({"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}).encode()


def test_request_span_is_a_child_of_the_traceparent(shared):
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    tracer = provider.get_tracer("test")
    service = Local(Settings(store=shared.root, refresh=3600), tracer)
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    assert service.post("/act", content=BODY, headers={"traceparent": parent}).status_code == 200
    assert service.get("/skills/nobody").status_code == 404
    service.close()
    act, missing = (json.loads(span.to_json()) for span in spans.get_finished_spans())
    assert (act["name"], act["attributes"]["http.response.status_code"]) == ("POST /act", 200)
    assert act["context"]["trace_id"] == "0x" + "a" * 32
    assert act["parent_id"] == "0x" + "b" * 16
    assert (missing["name"], missing["attributes"]["http.response.status_code"]) == (
        "GET /skills/{ref}",
        404,
    )


def test_tracing_is_off_without_an_otlp_endpoint(monkeypatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert configure_tracer() is None
