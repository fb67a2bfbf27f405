"""A defect: a Problem and a log line with one id, and no traceback to the client."""

import asyncio
import logging

from skills_store.runtime.onnx_session import Net
from tests.serving.local import problem, skill_rows, state_rows

ASK = {"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}


def test_internal_error_returns_a_request_id_that_is_logged(store, serve, monkeypatch, caplog):
    service = serve(store.root)

    def broken(*_, **__):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Net, "run", broken)
    with caplog.at_level(logging.ERROR):
        answer = service.post("/act", json=ASK)
    found = problem(answer, 500, "internal_error")
    request_id = answer.headers["x-request-id"]
    assert request_id in found["message"]
    assert "secret" not in answer.text
    [record] = caplog.records
    assert request_id in record.getMessage()
    assert record.exc_info[0] is ZeroDivisionError
    assert service.get("/healthz").status_code == 200


def test_a_client_that_leaves_is_no_error(store, serve, caplog):
    app = serve(store.root).app
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    where = {"method": "POST", "path": "/act", "query_string": b"", "headers": [], "root_path": ""}
    asyncio.run(app({"type": "http", **where}, receive, send))
    assert not sent
    assert not caplog.records


def test_a_graph_that_overflows_is_not_passed_on(store, serve, monkeypatch):
    service = serve(store.root)
    run = Net.run
    monkeypatch.setattr(Net, "run", lambda *inputs, **named: run(*inputs, **named) * float("nan"))
    problem(service.post("/act", json=ASK), 422, "not_finite")
