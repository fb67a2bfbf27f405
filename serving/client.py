"""A small synchronous client: numpy in, numpy out. Needs httpx, and neither the store nor any model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray


class ServiceError(Exception):
    """The service refused. `problem` is its Problem: code, message, field, expected."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(status, problem)
        self.status = status
        self.problem = problem

    def __str__(self) -> str:
        expected = f" (expected {self.problem['expected']})" if self.problem.get("expected") else ""
        return f"{self.status} {self.problem['code']}: {self.problem['message']}{expected}"


@dataclass(frozen=True)
class Embedding:
    z: Array  # (N, D), one per window
    pooled: Array  # (D,)
    nearest: list[tuple[str, float]]  # training clips and their cosine, nearest first
    window: int


@dataclass(frozen=True)
class Decision:
    z: Array  # (D,) or (B, D)
    targets: Array  # (J,) or (B, J)


class Client:
    """One connection, kept open. Not to be shared between threads."""

    def __init__(self, url: str = "http://127.0.0.1:8000", *, timeout: float = 30.0, http: httpx.Client | None = None):
        self._http = http or httpx.Client(base_url=url, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def act(self, state: ArrayLike, z: ArrayLike, skill: str | None = None) -> Array:
        """(S,), (D,) -> joint targets (J,); or (B, S), (B, D) -> (B, J)."""
        return _floats(self._post("/act", {"state": _lists(state), "z": _lists(z)} | _named(skill))["targets"])

    def decide(self, controller: str, state: ArrayLike, goal: ArrayLike) -> Decision:
        """What the controller does in this state for this goal."""
        found = self._post(f"/controllers/{controller}/act", {"state": _lists(state), "goal": _lists(goal)})
        return Decision(_floats(found["z"]), _floats(found["targets"]))

    def encode(self, states: ArrayLike, skill: str | None = None) -> Embedding:
        """A clip as states at the control rate, (T, S)."""
        return _embedding(self._post("/encode", {"frames": _lists(states)} | _named(skill)))

    def encode_file(self, path: Path | str, skill: str | None = None) -> Embedding:
        """A clip in any format that the service imports."""
        path = Path(path)
        answer = self._http.post("/encode", files={"file": (path.name, path.read_bytes())}, data=_named(skill))
        return _embedding(_success(answer))

    def skill(self, ref: str) -> dict[str, Any]:
        """Layout of the state, joints, gains, body, the clips' z and the card of one skill version."""
        return _success(self._http.get(f"/skills/{ref}"))

    def skills(self) -> list[dict[str, Any]]:
        return _success(self._http.get("/skills"))["skills"]

    def _post(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        return _success(self._http.post(path, json=content))


def _success(answer: httpx.Response) -> dict[str, Any]:
    if answer.is_success:
        return answer.json()
    # Anything but a Problem comes from a proxy in between, or from another service altogether.
    problem: dict[str, Any] = {"code": "http_error", "message": answer.text[:200], "field": None, "expected": None}
    with suppress(ValueError):
        said = answer.json()
        if isinstance(said, dict) and said.keys() == problem.keys():
            problem = said
    raise ServiceError(answer.status_code, problem)


def _lists(numbers: ArrayLike) -> list[Any]:
    return np.asarray(numbers, np.float32).tolist()


def _floats(numbers: list[Any]) -> Array:
    return np.array(numbers, np.float32)


def _named(skill: str | None) -> dict[str, str]:
    return {"skill": skill} if skill else {}


def _embedding(found: dict[str, Any]) -> Embedding:
    nearest = [(near["clip"], near["cosine"]) for near in found["nearest"]]
    return Embedding(_floats(found["z"]), _floats(found["pooled"]), nearest, found["window"])
