"""Admitted hosts and origins: without keys, loopback names and pages of the same origin only."""

from __future__ import annotations

import httpx
import pytest
from pydantic import ValidationError
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from serving.access import keys
from serving.settings import Settings
from tests.serving.local import problem
from tests.serving.process import Running, connected, running

ROUTES = [
    ("GET", "/skills"),
    ("GET", "/healthz"),
    ("GET", "/docs"),
    ("POST", "/act"),
    ("POST", "/v2/models/humanoid/infer"),
]
FOREIGN = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "[::2]",
    "",
]


def open_session(live: Running, **options: object):
    return connect(f"{live.url.replace('http', 'ws')}/session", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8000"]
)
def test_names_of_the_loopback_are_admitted(service, host):
    assert service.get("/skills", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_foreign_host_is_refused_on_every_route(service, method, path, host):
    send = service.get if method == "GET" else service.post
    response = send(path, headers={"host": host})
    assert response.status_code == 403
    assert (response.json()["code"], response.json()["field"]) == ("not_permitted", "host")


def test_hosts_that_are_allowed_are_served_and_no_others(serve, store):
    local = serve(store.root, allowed_hosts="api.example, Other.Example")
    assert local.get("/skills", headers={"host": "api.example:9000"}).status_code == 200
    assert local.get("/skills", headers={"host": "other.example"}).status_code == 200
    problem(local.get("/skills", headers={"host": "localhost"}), 403, "not_permitted", "host")
    assert (
        serve(store.root, allowed_hosts="*")
        .get("/skills", headers={"host": "any.example"})
        .status_code
        == 200
    )


def test_with_keys_any_host_is_served(serve, store, tmp_path):
    token, key = keys.make_key("game", ["act"])
    keys.write(tmp_path / "keys.json", [key])
    local = serve(store.root, keys=tmp_path / "keys.json")
    headers = {"host": "api.example", "authorization": f"Bearer {token}"}
    assert local.get("/skills", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/act", "/plan", "/v2/models/humanoid/infer"])
def test_post_from_another_origin_is_refused(service, path):
    headers = {"host": "localhost:8000", "origin": "http://evil.example"}
    refused = service.post(path, headers=headers)
    assert refused.status_code == 403
    assert "another origin" in refused.text
    same = headers | {"origin": "http://localhost:8000"}
    assert service.post(path, headers=same).status_code != 403
    assert service.get("/skills", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin", ["null", "evil.example", "http://evil.example", "http://", "", "http://127.0.0.1:1"]
)
def test_session_from_another_origin_is_refused(live, origin):
    with pytest.raises(InvalidStatus, match="403"), open_session(live, origin=origin):
        pass


def test_a_refused_handshake_has_a_request_id_and_is_counted(live):
    with (
        pytest.raises(InvalidStatus) as refused,
        open_session(live, origin="http://evil.example"),
    ):
        pass
    assert refused.value.response.headers["x-request-id"]
    counted = 'repertoire_requests_total{route="/session",status="403"}'
    assert counted in httpx.get(f"{live.url}/metrics").text


def test_session_with_foreign_host_and_equal_origin_is_refused(live):
    host = f"evil.example:{live.address[1]}"
    with pytest.raises(InvalidStatus, match="403"):
        connect(
            f"ws://{host}/session", sock=connected(live.address), origin=Origin(f"http://{host}")
        )


def test_session_opens_for_same_or_allowed_origin_only(live, shared):
    with open_session(live, origin=live.url):
        pass
    with running(shared.root, allowed_origins="https://game.example") as other:
        with open_session(other, origin="https://game.example"):
            pass
        with (
            pytest.raises(InvalidStatus, match="403"),
            open_session(other, origin="https://other.example"),
        ):
            pass


def test_pages_of_an_allowed_origin_may_read_replies(serve, store):
    local = serve(store.root, allowed_origins="https://game.example")
    response = local.get("/skills", headers={"origin": "https://game.example"})
    assert response.headers["access-control-allow-origin"] == "https://game.example"
    exposed = response.headers["access-control-expose-headers"]
    assert {"x-request-id", "server-timing"} <= set(exposed.split(", "))
    assert (
        "access-control-allow-origin"
        not in local.get("/skills", headers={"origin": "https://b.example"}).headers
    )


@pytest.mark.parametrize(
    "origin", ["game.example", "https://game.example/page", "ftp://game.example"]
)
def test_invalid_origin_setting_is_refused(origin):
    with pytest.raises(ValidationError, match="no origin"):
        Settings(allowed_origins=(origin,))


def test_session_accepts_a_key_as_a_subprotocol(shared, tmp_path):
    token, key = keys.make_key("game", ["act"])
    keys.write(tmp_path / "keys.json", [key])
    with running(shared.root, keys=tmp_path / "keys.json") as live:
        with open_session(live, subprotocols=["bearer", token]) as socket:
            assert socket.subprotocol == "bearer"
        for wrong in (["bearer", "game.wrong"], ["bearer"], [token], [token, "bearer"]):
            with pytest.raises(InvalidStatus, match="401"), open_session(live, subprotocols=wrong):
                pass
