"""Clients of a running service: two in Python, and the C++ and C# examples with a compiler."""

import asyncio
import shutil
import socket
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import httpx
import numpy as np
import pytest

from serving.access import keys
from serving.client import AsyncClient, Client, ServiceError
from skills_store.runtime.library import Controller
from tests.serving.local import goal_rows, skill_rows, state_rows
from tests.serving.process import ROOT, running

STATE = state_rows(3)
Z = skill_rows(3)
GOAL = goal_rows(3)
EXAMPLES = ROOT / "docs" / "clients"


def test_clients_warn_of_a_z_off_the_sphere(live, library):
    with Client(live.url) as client:
        with pytest.warns(UserWarning, match="not on the unit sphere") as caught:
            targets = client.act(STATE[0], 2 * Z[0])
        np.testing.assert_allclose(targets, library.act(STATE[:1], Z[:1])[0], atol=1e-5)
        assert caught[0].filename == __file__
        with pytest.warns(UserWarning, match="not on the unit sphere"):
            client.interpolate(["walk", 2 * Z[0]], 3)


def test_client_sends_a_seed_of_numpy(live):
    with Client(live.url) as client, pytest.raises(ServiceError, match="not_sampled"):
        client.act(STATE[0], Z[0], seed=np.int64(3))


def test_a_refused_connection_names_the_address():
    async def call_async(url):
        async with AsyncClient(url) as client:
            await client.skills()

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # not listening, so connections are refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Client(url) as client, pytest.raises(httpx.ConnectError) as caught:
            client.act(STATE[0], Z[0])
        assert caught.value.__notes__ == [f"the request was POST {url}/act"]
        with pytest.raises(httpx.ConnectError) as caught:
            asyncio.run(call_async(url))
        assert caught.value.__notes__ == [f"the request was GET {url}/skills"]


def test_sync_and_async_clients_match_the_library_bit_for_bit(live, shared, library):
    controller = Controller.open(shared, "reach")

    async def call_async():
        async with AsyncClient(live.url) as client:
            one, decided, embedded = await asyncio.gather(
                client.act(STATE[0], Z[0]),
                client.decide("reach", STATE, GOAL),
                client.encode(state_rows(9)),
            )
            path = await client.interpolate(["walk", Z[0]], 4)
            return (
                one,
                decided,
                embedded,
                path,
                await client.latents("humanoid"),
                await client.skills(),
            )

    with Client(live.url) as client:
        sync_results = (
            client.act(STATE[0], Z[0]),
            client.decide("reach", STATE, GOAL),
            client.encode(state_rows(9)),
            client.interpolate(["walk", Z[0]], 4),
            client.latents("humanoid"),
            client.skills(),
        )
        assert client.controllers()[0]["name"] == "reach"
        assert client.skill("humanoid@1")["latent_dim"] == 8
    for one, decided, embedded, path, latents, skills in (sync_results, asyncio.run(call_async())):
        np.testing.assert_array_equal(one, library.act(STATE[:1], Z[:1])[0])
        np.testing.assert_array_equal(decided.z, controller.decide(STATE, GOAL))
        np.testing.assert_array_equal(decided.targets, library.act(STATE, decided.z))
        np.testing.assert_array_equal(embedded.z, library.embed(state_rows(9)).windows)
        assert embedded.nearest[0][0] == "walk"
        assert path.shape == (4, 8)
        np.testing.assert_array_equal(latents["walk"], np.eye(8, dtype=np.float32)[0])
        assert skills[0]["name"] == "humanoid"


def test_client_sends_its_key(shared, tmp_path):
    token, key = keys.make_key("game", ["act"])
    keys.write(tmp_path / "keys.json", [key])
    with running(shared.root, keys=tmp_path / "keys.json") as live:
        with Client(live.url, key=token) as client:
            assert client.act(STATE, Z).shape == (3, 28)
            with pytest.raises(ServiceError, match="403 not_permitted"):
                client.encode(state_rows(9))
        with Client(live.url) as client, pytest.raises(ServiceError, match="401 no_key"):
            client.act(STATE, Z)


class Busy(BaseHTTPRequestHandler):
    """A server that replies twice with the status in the path, and then with 200."""

    protocol_version = "HTTP/1.1"
    paths: ClassVar[list[str]] = []  # of all requests

    def do_GET(self):
        self.paths.append(self.path)
        status = int(self.path.split("/")[2]) if self.paths.count(self.path) < 3 else 200
        body = b'{"skills": []}'
        self.send_response(status)
        self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@pytest.mark.parametrize(
    ("status", "times"), [(429, 3), (503, 3), (500, 1), (404, 1), (422, 1), (408, 1)]
)
def test_client_retries_only_on_busy_statuses(status, times):
    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        path = f"/skills/{status}"
        Busy.paths.clear()
        with Client(f"http://127.0.0.1:{server.server_port}") as client:
            if times == 1:
                with pytest.raises(ServiceError, match=str(status)):
                    client.skill(str(status))
            else:
                client.skill(str(status))
        assert Busy.paths == [path] * times
        server.shutdown()
        thread.join()


def assert_prints_targets(command, live, library):
    state = np.zeros((1, 69), np.float32)
    z = np.zeros((1, 8), np.float32)
    state[0, 2] = 0.9
    state[0, 3] = 1
    z[0, 0] = 1
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    np.testing.assert_array_equal(
        np.array(done.stdout.split(), np.float32), library.act(state, z)[0]
    )


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler here")
def test_cpp_example_matches_the_library(live, library, tmp_path):
    program = tmp_path / "act"
    command = [
        "c++",
        "-std=c++17",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        str(EXAMPLES / "act.cpp"),
        "-o",
        str(program),
    ]
    subprocess.run(command, check=True, timeout=120)
    host, port = live.address
    assert_prints_targets([str(program), host, str(port), "69", "8"], live, library)
    refused = subprocess.run(
        [str(program), host, str(port), "68", "8"], check=False, capture_output=True, text=True
    )
    assert (refused.returncode, "wrong_shape" in refused.stderr) == (1, True)


@pytest.mark.skipif(shutil.which("dotnet") is None, reason="no .NET here")
def test_csharp_example_matches_the_library(live, library, tmp_path):
    subprocess.run(
        ["dotnet", "new", "console", "-o", str(tmp_path), "--force"], check=True, timeout=300
    )
    (tmp_path / "Program.cs").write_text((EXAMPLES / "Act.cs").read_text())
    subprocess.run(
        ["dotnet", "build", "-o", str(tmp_path / "out"), str(tmp_path)], check=True, timeout=300
    )
    program = next(Path(tmp_path / "out").glob("*.dll"))
    assert_prints_targets(["dotnet", str(program), live.url, "69", "8"], live, library)
