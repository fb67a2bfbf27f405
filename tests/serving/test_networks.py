"""Listening addresses, reverse proxies and idle connections."""

from __future__ import annotations

import asyncio
import socket
import time

import httpx
import pytest
import uvloop

from serving.client import Client
from serving.server.listening import ACCEPTS_PER_PASS, listen, make_url, repeat
from tests.serving.local import skill_rows, state_rows
from tests.serving.process import connected, exchange, receive_or_none, request, running

HEALTH = request("/healthz", b"", method="GET")


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@ipv6
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_ipv6_address_is_served_and_printed_with_brackets(shared, host):
    with running(shared.root, host=host) as live:
        assert live.url.startswith("http://[::1]:")
        assert httpx.get(f"{live.url}/skills").status_code == 200


@ipv6
def test_the_unspecified_ipv6_address_serves_both_families():
    (listening,) = listen("::", 0)
    with listening:
        port = listening.getsockname()[1]
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port)).close()
        assert make_url("http", "::", [listening]) == f"http://[::]:{port}"


def test_a_name_is_served_on_all_its_addresses(monkeypatch):
    found = [
        (socket.AF_INET6, 1, 6, "", ("::1", 0, 0, 0)),
        (socket.AF_INET, 1, 6, "", ("127.0.0.1", 0)),
    ]
    known = found if has_ipv6() else found[1:]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: known)
    sockets = listen("robot.example", 0)
    assert {listening.family for listening in sockets} == {family for family, *_ in known}
    assert len({listening.getsockname()[1] for listening in sockets}) == 1
    for listening in sockets:
        listening.close()


def test_idle_connection_is_closed_after_keep_alive(shared):
    with running(shared.root, keep_alive=1) as live, connected(live.address) as sock:
        assert exchange(sock, HEALTH).status == 200
        time.sleep(0.5)
        assert exchange(sock, HEALTH).status == 200
        started = time.monotonic()
        assert receive_or_none(sock) is None
        assert 0.8 < time.monotonic() - started < 5


def test_default_keep_alive_outlasts_the_clients_timeout(live):
    with connected(live.address) as sock, Client(live.url) as client:
        assert exchange(sock, HEALTH).status == 200
        for pause in (5.2, 0.0):  # httpx's own limit is 5 s
            client.act(state_rows(1)[0], skill_rows(1)[0])
            time.sleep(pause)
        assert exchange(sock, HEALTH).status == 200


@pytest.mark.parametrize(
    ("settings", "path", "headers"),
    [
        ({"root_path": "/rep/"}, "", {}),  # the proxy strips the prefix
        ({"root_path": "/rep"}, "/rep", {}),  # it does not
        ({}, "", {"x-forwarded-prefix": "/rep"}),
        ({}, "/rep", {"x-forwarded-prefix": "/rep/"}),
    ],
)
def test_the_service_works_below_a_path(serve, store, settings, path, headers):
    local = serve(store.root, **settings)
    body = {"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}
    assert local.post(f"{path}/act", json=body, headers=headers).status_code == 200
    assert local.get(f"{path}/skills", headers=headers).status_code == 200
    assert local.get(f"{path}/nothing", headers=headers).json()["code"] == "not_found"
    page = local.get(f"{path}/docs", headers=headers).text
    assert 'url: "openapi.json"' in page or "url: 'openapi.json'" in page
    assert local.get(f"{path}/openapi.json", headers=headers).json()["servers"] == [{"url": "."}]


def test_docs_page_loads_nothing_from_another_host(service):
    page = service.get("/docs").text
    assert "//" not in page.replace("<!DOCTYPE html>", "").replace("// ", "").replace("</", "")
    for asset in ("swagger-ui-bundle.js", "swagger-ui.css", "favicon.png"):
        assert f"docs-assets/{asset}" in page
        assert len(service.get(f"/docs-assets/{asset}").content) > 500
    assert service.get("/docs-assets/other.js").status_code == 404


def test_forwarded_prefix_is_ignored_from_untrusted_proxies(serve, store):
    local = serve(store.root, trusted_proxies="10.0.0.1")
    assert local.get("/rep/skills", headers={"x-forwarded-prefix": "/rep"}).status_code == 404


async def count_accepting_passes(sockets, waiting):
    """In how many passes of the event loop `waiting` connections are accepted."""
    loop = asyncio.get_running_loop()
    passes = 0
    accepted_in = []

    class Recorder(asyncio.Protocol):
        def connection_made(self, transport):
            accepted_in.append(passes)

    def begin_pass():
        nonlocal passes
        passes += 1
        loop.call_soon(begin_pass)

    servers = [await loop.create_server(Recorder, sock=listening) for listening in sockets]
    clients = [socket.create_connection(sockets[0].getsockname()) for _ in range(waiting)]
    begin_pass()
    while len(accepted_in) < waiting:
        await asyncio.sleep(0.01)
    for client in clients:
        client.close()
    for server in servers:
        server.close()
    return len(set(accepted_in))


def test_several_waiting_connections_are_accepted_per_loop_pass():
    sockets = repeat(listen("127.0.0.1", 0))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        passes = runner.run(count_accepting_passes(sockets, 3 * ACCEPTS_PER_PASS))
    assert passes == 3
