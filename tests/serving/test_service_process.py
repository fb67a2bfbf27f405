"""The service as a process: what it imports, installs and prints, and the client over a socket."""

import json
import re
import socket
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import httpx
import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from serving.__main__ import main
from serving.client import Client, ServiceError
from skills_store.runtime.library import Controller, SkillLibrary
from tests.serving.local import goal_rows, skill_rows, state_rows
from tests.serving.process import ROOT, environment, running

LIGHT = """
import asyncio, sys
from serving.app import create_app
from serving.settings import Settings

body = sys.stdin.buffer.read()
app, sent = create_app(Settings()), []

async def receive():
    return {"type": "http.request", "body": body}

async def send(message):
    sent.append(message)

scope = {"type": "http", "method": "POST", "path": "/act", "raw_path": b"/act", "headers": [],
         "query_string": b"", "http_version": "1.1", "scheme": "http", "server": ("local", 80),
         "client": ("local", 1), "root_path": ""}
asyncio.run(app(scope, receive, send))
assert sent[0]["status"] == 200, sent
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_one_act_loads_neither_torch_nor_mujoco_nor_onnx(shared):
    body = json.dumps({"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()})
    done = subprocess.run(
        [sys.executable, "-c", LIGHT],
        check=False,
        input=body,
        env=environment(shared.root),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert {"serving", "skills_store", "onnxruntime", "fastapi"} <= loaded
    assert not loaded & {"torch", "mujoco", "onnx", "onnxscript", "isaacgym", "hydra", "hlc"}


def installed_with(*extras):
    """Every distribution that `pip install repertoire[extras]` installs, by installed metadata."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = project["dependencies"] + [
        one for extra in extras for one in project["optional-dependencies"][extra]
    ]
    pending = [Requirement(one) for one in requirements]
    found = set()
    while pending:
        one = pending.pop()
        name = canonicalize_name(one.name)
        if name in found:
            continue
        found.add(name)
        for text in requires(one.name) or ():
            dependency = Requirement(text)
            if dependency.marker is None or any(
                dependency.marker.evaluate({"extra": extra}) for extra in {"", *one.extras}
            ):
                pending.append(dependency)
    return found


def test_serving_installs_neither_torch_nor_mujoco_nor_onnx():
    found = installed_with("serve", "cpu")
    assert {"fastapi", "uvicorn", "uvloop", "onnxruntime", "orjson", "prometheus-client"} <= found
    assert not found & {
        "torch",
        "mujoco",
        "mujoco-core",
        "onnx",
        "onnxscript",
        "hydra-core",
        "ray",
        "scipy",
    }


def test_the_client_against_a_running_service(shared):
    library = SkillLibrary.open(shared, "humanoid")
    controller = Controller.open(shared, "reach")
    state = state_rows(3)
    z = skill_rows(3)
    goal = goal_rows(3)
    with running(shared.root, max_body=300_000) as live, Client(live.url) as client:
        assert "serves humanoid, reach" in live.startup_line
        np.testing.assert_array_equal(client.act(state[0], z[0]), library.act(state[:1], z[:1])[0])
        np.testing.assert_array_equal(
            client.act(state, z, skill="humanoid@1"), library.act(state, z)
        )
        decision = client.decide("reach", state, goal)
        np.testing.assert_array_equal(decision.z, controller.decide(state, goal))
        embedding = client.encode(state_rows(9))
        np.testing.assert_array_equal(embedding.z, library.embed(state_rows(9)).windows)
        assert embedding.nearest[0][0] == "walk"
        assert client.skills()[0]["name"] == "humanoid"
        assert client.skill("humanoid@latest")["latent_dim"] == 8
        with pytest.raises(
            ServiceError, match=r"422 wrong_shape: z has 2 numbers; it needs 8"
        ) as refused:
            client.act(state[0], z[0, :2])
        assert refused.value.problem["field"] == "z"
        with pytest.raises(ServiceError, match=r"503 store_error"):
            client.encode_file(Path(__file__))
        with pytest.raises(ServiceError, match=r"413 body_too_large"):
            client.act(np.zeros((2000, 69)), z)
        assert httpx.get(f"{live.url}/readyz").status_code == 200


def test_empty_store_is_live_and_not_ready(tmp_path):
    with running(tmp_path / "none") as live:
        assert "serves nothing yet" in live.startup_line
        assert httpx.get(f"{live.url}/healthz").status_code == 200
        response = httpx.get(f"{live.url}/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "unknown_skill")


def test_startup_failure_is_a_one_line_error(tmp_path, shared, monkeypatch, capsys):
    (tmp_path / "layout.json").write_text('{"layout":99,"reader":99}')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        cases = {
            "REPERTOIRE_PORT": {"REPERTOIRE_STORE": shared.root, "REPERTOIRE_PORT": "many"},
            "in use": {
                "REPERTOIRE_STORE": shared.root,
                "REPERTOIRE_PORT": taken.getsockname()[1],
            },
            "layout": {"REPERTOIRE_STORE": tmp_path, "REPERTOIRE_PORT": 0},
        }
        for reason, settings in cases.items():
            for name, value in settings.items():
                monkeypatch.setenv(name, str(value))
            assert main() == 2
            assert re.fullmatch(rf"serving: [^\n]*{reason}[^\n]*\n", capsys.readouterr().err)
