"""The app over a tiny store, called in this process, and input rows for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from opentelemetry.trace import Tracer

from serving.app import enclose, make_gateway
from serving.settings import Settings
from skills_store.store import Store
from tests.tiny import GOAL, LATENT, STATE, publish_tiny, publish_tiny_controller


class Local:
    """The app without a socket. An exception that leaves the app is raised here."""

    def __init__(
        self, settings: Settings, tracer: Tracer | None = None, root_path: str = ""
    ) -> None:
        self.gateway = make_gateway(settings)
        self.service = self.gateway.service
        self.app = enclose(self.gateway, tracer)
        self._runner = asyncio.Runner()
        api = self.gateway.api
        self._lifespan = api.router.lifespan_context(api)
        self._runner.run(self._lifespan.__aenter__())
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, root_path=root_path),
            base_url="http://localhost",
        )

    def close(self) -> None:
        self._runner.run(self._http.aclose())
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()

    def refresh(self) -> None:
        """Look for changes of the store, as the service does twice a second."""
        self._runner.run(self.service.refresh())

    def call(self, scope: dict[str, Any]) -> int:
        """The status of a request without a body, with this ASGI scope."""
        statuses: list[int] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        async def run() -> None:
            await self.app(scope, receive, send)

        self._runner.run(run())
        return statuses[0]

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._http.get(path, **options))

    def head(self, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._http.head(path, **options))

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._http.post(path, **options))

    def together(self, requests: list[tuple[str, Any]]) -> list[httpx.Response]:
        async def gather_all() -> list[httpx.Response]:
            return await asyncio.gather(
                *(self._http.post(path, json=body) for path, body in requests)
            )

        return self._runner.run(gather_all())


def write_store(root: Path) -> Store:
    store = Store(root)
    publish_tiny_controller(store, publish_tiny(store))
    return store


def problem(
    response: httpx.Response, status: int, code: str, field: str | None = None
) -> dict[str, Any]:
    """Assert that `response` is this Problem, and return it."""
    assert response.status_code == status, response.text
    found = response.json()
    assert list(found) == ["code", "message", "field", "expected"]
    assert (found["code"], found["field"]) == (code, field), found
    assert found["message"]
    assert "Traceback" not in response.text
    return found


def state_rows(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, STATE)).astype(np.float32)
    rows[:, 3:7] /= np.linalg.norm(rows[:, 3:7], axis=1, keepdims=True)
    return rows


def skill_rows(count: int, seed: int = 1) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, LATENT)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def goal_rows(count: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal((count, GOAL)).astype(np.float32)


def floats(numbers: Any) -> np.ndarray:
    """The numbers as a client reads them from JSON."""
    return np.array(json.loads(json.dumps(numbers)), np.float32)
