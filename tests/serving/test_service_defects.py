"""Internal errors: a Problem and a log line with one id, and no traceback to the client."""

import asyncio
import logging

from skills_store.runtime.onnx_session import Net
from tests.serving.local import problem, skill_rows, state_rows

BODY = {"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}


def test_internal_error_returns_a_request_id_that_is_logged(store, serve, monkeypatch, caplog):
    service = serve(store.root)

    def broken(*_, **__):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Net, "run", broken)
    with caplog.at_level(logging.ERROR):
        response = service.post("/act", json=BODY)
    found = problem(response, 500, "internal_error")
    request_id = response.headers["x-request-id"]
    assert request_id in found["message"]
    assert "secret" not in response.text
    [record] = caplog.records
    assert request_id in record.getMessage()
    assert record.exc_info[0] is ZeroDivisionError
    assert service.get("/healthz").status_code == 200


def test_client_disconnect_is_not_an_error(store, serve, caplog):
    app = serve(store.root).app
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {"method": "POST", "path": "/act", "query_string": b"", "headers": [], "root_path": ""}
    asyncio.run(app({"type": "http", **scope}, receive, send))
    assert not sent
    assert not caplog.records


def test_non_finite_graph_output_is_refused(store, serve, monkeypatch):
    service = serve(store.root)
    run = Net.run
    monkeypatch.setattr(Net, "run", lambda *inputs, **named: run(*inputs, **named) * float("nan"))
    problem(service.post("/act", json=BODY), 422, "not_finite")
