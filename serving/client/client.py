"""Clients, one synchronous and one for asyncio: numpy in, numpy out. They need httpx, but no store
and no model.

Connections are kept alive. A request answered with 429 or 503 is retried up to `retries` times,
after the response's Retry-After. Nothing else is retried: only the caller can know whether another
request may be repeated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, SupportsIndex, TypeVar

import httpx
from numpy.typing import ArrayLike

from serving.client import calls
from serving.client.calls import Array, Call, Decision, Embedding, Plan, ServiceError

__all__ = ["AsyncClient", "Client", "Decision", "Embedding", "Plan", "ServiceError"]

T = TypeVar("T")
URL = "http://127.0.0.1:8000"
BUSY = (429, 503)
LONGEST_WAIT = 30.0  # s
# The service keeps idle connections for 75 s, load balancers commonly for 60 s. The client closes
# its own earlier, so that it sends no request on a connection that the other side is closing.
LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)


class Client:
    """Not to be shared between threads."""

    def __init__(
        self,
        url: str = URL,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        http: httpx.Client | None = None,
    ) -> None:
        self._http = http or httpx.Client(
            base_url=url, timeout=timeout, headers=_headers(key), limits=LIMITS
        )
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def act(
        self,
        state: ArrayLike,
        z: ArrayLike | str,
        skill: str | None = None,
        *,
        seed: SupportsIndex | None = None,
        strict: bool = False,
    ) -> Array:
        """(S,), (D,) -> joint targets (J,); or (B, S), (B, D) -> (B, J). `z` may name a training
        clip. A seed adds the policy's noise."""
        return self._request(calls.act(state, z, skill, seed, strict))

    def decide(self, controller: str, state: ArrayLike, goal: ArrayLike) -> Decision:
        """The controller's z and joint targets for this state and goal."""
        return self._request(calls.decide(controller, state, goal))

    def plan(self, task: str, state: ArrayLike, goal: ArrayLike, **others: Any) -> Plan:
        """The skill with the highest return of those simulated from this state (S,). `others` may
        be `skill`, `parameters` of the task, `last_z` and `seed`, as in PlanRequest."""
        return self._request(calls.plan(task, state, goal, others))

    def encode(self, states: ArrayLike, skill: str | None = None) -> Embedding:
        """Encode a clip given as states at the control rate, (T, S)."""
        return self._request(calls.encode(states, skill))

    def encode_file(self, path: Path | str, skill: str | None = None) -> Embedding:
        """Encode a clip in any format that the service imports."""
        return self._request(calls.encode_file(path, skill))

    def interpolate(
        self, path: Sequence[ArrayLike | str], steps: int, skill: str | None = None
    ) -> Array:
        """z (steps, D) along the sphere, through each z or named clip of `path`."""
        return self._request(calls.interpolate(path, steps, skill))

    def latents(self, ref: str) -> dict[str, Array]:
        """z (D,) of each training clip."""
        return self._request(calls.latents(ref))

    def skill(self, ref: str) -> dict[str, Any]:
        """Layout of the state, joints, gains, body, the clips' z and the card of one skill
        version."""
        return self._request(calls.get_json(f"/skills/{ref}"))

    def skills(self) -> list[dict[str, Any]]:
        return self._request(calls.get_json("/skills", "skills"))

    def controller(self, ref: str) -> dict[str, Any]:
        """Task, layout of the goal, `llc_steps` and library of one controller version."""
        return self._request(calls.get_json(f"/controllers/{ref}"))

    def controllers(self) -> list[dict[str, Any]]:
        return self._request(calls.get_json("/controllers", "controllers"))

    def _request(self, call: Call[T]) -> T:
        answer = self._send(call)
        for _ in range(self._retries):
            if answer.status_code not in BUSY:
                break
            time.sleep(_wait(answer))
            answer = self._send(call)
        return _read(call, answer)

    def _send(self, call: Call[T]) -> httpx.Response:
        with calls.note_address():
            return self._http.request(call.method, call.path, **call.request_kwargs)


class AsyncClient:
    """`Client` for asyncio; any number of tasks may share one."""

    def __init__(
        self,
        url: str = URL,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._http = http or httpx.AsyncClient(
            base_url=url, timeout=timeout, headers=_headers(key), limits=LIMITS
        )
        self._retries = retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def act(
        self,
        state: ArrayLike,
        z: ArrayLike | str,
        skill: str | None = None,
        *,
        seed: SupportsIndex | None = None,
        strict: bool = False,
    ) -> Array:
        """(S,), (D,) -> joint targets (J,); or (B, S), (B, D) -> (B, J). `z` may name a training
        clip. A seed adds the policy's noise."""
        return await self._request(calls.act(state, z, skill, seed, strict))

    async def decide(self, controller: str, state: ArrayLike, goal: ArrayLike) -> Decision:
        """The controller's z and joint targets for this state and goal."""
        return await self._request(calls.decide(controller, state, goal))

    async def plan(self, task: str, state: ArrayLike, goal: ArrayLike, **others: Any) -> Plan:
        """The skill with the highest return of those simulated from this state (S,). `others` may
        be `skill`, `parameters` of the task, `last_z` and `seed`, as in PlanRequest."""
        return await self._request(calls.plan(task, state, goal, others))

    async def encode(self, states: ArrayLike, skill: str | None = None) -> Embedding:
        """Encode a clip given as states at the control rate, (T, S)."""
        return await self._request(calls.encode(states, skill))

    async def encode_file(self, path: Path | str, skill: str | None = None) -> Embedding:
        """Encode a clip in any format that the service imports."""
        return await self._request(calls.encode_file(path, skill))

    async def interpolate(
        self, path: Sequence[ArrayLike | str], steps: int, skill: str | None = None
    ) -> Array:
        """z (steps, D) along the sphere, through each z or named clip of `path`."""
        return await self._request(calls.interpolate(path, steps, skill))

    async def latents(self, ref: str) -> dict[str, Array]:
        """z (D,) of each training clip."""
        return await self._request(calls.latents(ref))

    async def skill(self, ref: str) -> dict[str, Any]:
        """Layout of the state, joints, gains, body, the clips' z and the card of one skill
        version."""
        return await self._request(calls.get_json(f"/skills/{ref}"))

    async def skills(self) -> list[dict[str, Any]]:
        return await self._request(calls.get_json("/skills", "skills"))

    async def controller(self, ref: str) -> dict[str, Any]:
        """Task, layout of the goal, `llc_steps` and library of one controller version."""
        return await self._request(calls.get_json(f"/controllers/{ref}"))

    async def controllers(self) -> list[dict[str, Any]]:
        return await self._request(calls.get_json("/controllers", "controllers"))

    async def _request(self, call: Call[T]) -> T:
        answer = await self._send(call)
        for _ in range(self._retries):
            if answer.status_code not in BUSY:
                break
            await asyncio.sleep(_wait(answer))
            answer = await self._send(call)
        return _read(call, answer)

    async def _send(self, call: Call[T]) -> httpx.Response:
        with calls.note_address():
            return await self._http.request(call.method, call.path, **call.request_kwargs)


def _headers(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _wait(answer: httpx.Response) -> float:  # s
    header = answer.headers.get("retry-after", "1")
    return min(float(header), LONGEST_WAIT) if header.isdigit() else 1.0


def _read(call: Call[T], answer: httpx.Response) -> T:
    if not answer.is_success:
        raise calls.failure(answer)
    return call.read(answer)
