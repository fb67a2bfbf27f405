"""Calls: each client method's request, and how to read its response. Pure; `client.py` sends it.

`act`, `decide`, `plan` and `encode` use raw float32 both ways: targets have the graph's bits.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import Any, Generic, SupportsIndex, TypeVar

import httpx
import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray
T = TypeVar("T")
FLOAT32 = np.dtype("<f4")


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
    goal: Array | None = None  # (G,) or (B, G), of a state machine: the next decision's goal


@dataclass(frozen=True)
class Plan:
    z: Array  # (D,)
    targets: Array  # (J,)
    predicted_return: float
    llc_steps: int  # control steps after which to plan again


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    request_kwargs: dict[str, Any] = field(default_factory=dict)  # httpx's own arguments


def act(
    state: ArrayLike,
    z: ArrayLike | str,
    skill: str | None,
    seed: SupportsIndex | None,
    strict: bool,
) -> Call[Array]:
    number = None if seed is None else index(seed)  # numpy's integers are not JSON
    others = {"skill": skill, "seed": number, "strict": strict or None}
    if isinstance(z, str):
        body = _raw({"state": state}, others | {"z": z})
    else:
        body = _raw({"state": state, "z": z}, others)

    def read(answer: httpx.Response) -> Array:
        _warn_of_normalised(json.loads(answer.headers["x-fields"]))
        return _tensors(answer)["targets"]

    return Call("POST", "/act", read, body)


def decide(controller: str, state: ArrayLike, goal: ArrayLike) -> Call[Decision]:
    def read(answer: httpx.Response) -> Decision:
        return Decision(**_tensors(answer))

    return Call(
        "POST", f"/controllers/{controller}/act", read, _raw({"state": state, "goal": goal}, {})
    )


def plan(task: str, state: ArrayLike, goal: ArrayLike, others: dict[str, Any]) -> Call[Plan]:
    tensors = {"state": state, "goal": goal}
    fields = {"task": task, **others}
    if fields.get("last_z") is not None:
        tensors["last_z"] = fields.pop("last_z")

    def read(answer: httpx.Response) -> Plan:
        fields = json.loads(answer.headers["x-fields"])
        _warn_of_normalised(fields)
        arrays = _tensors(answer)
        return Plan(arrays["z"], arrays["targets"], fields["predicted_return"], fields["llc_steps"])

    return Call("POST", "/plan", read, _raw(tensors, fields))


def encode(states: ArrayLike, skill: str | None) -> Call[Embedding]:
    return Call("POST", "/encode", _embedding_of_raw, _raw({"frames": states}, {"skill": skill}))


def encode_file(path: Path | str, skill: str | None) -> Call[Embedding]:
    path = Path(path)
    form = {
        "files": {"file": (path.name, path.read_bytes())},
        "data": {"skill": skill} if skill else {},
    }
    return Call("POST", "/encode", lambda answer: _embedding(answer.json()), form)


def interpolate(path: Sequence[ArrayLike | str], steps: int, skill: str | None) -> Call[Array]:
    points = [
        point if isinstance(point, str) else np.asarray(point, FLOAT32).tolist() for point in path
    ]
    fields = {"path": points, "steps": steps} | ({"skill": skill} if skill else {})

    def read(answer: httpx.Response) -> Array:
        found = answer.json()
        _warn_of_normalised(found)
        return np.array(found["z"], FLOAT32)

    return Call("POST", "/interpolate", read, {"json": fields})


def latents(ref: str) -> Call[dict[str, Array]]:
    def read(answer: httpx.Response) -> dict[str, Array]:
        return {name: np.array(z, FLOAT32) for name, z in answer.json()["latents"].items()}

    return Call("GET", f"/skills/{ref}/latents", read)


def get_json(path: str, part: str | None = None) -> Call[Any]:
    """A route that answers in plain JSON; `part` of it."""
    return Call("GET", path, lambda answer: answer.json()[part] if part else answer.json())


def failure(answer: httpx.Response) -> ServiceError:
    """The error of an unsuccessful response. A body other than a Problem comes from a proxy or
    another service."""
    problem: dict[str, Any] = {
        "code": "http_error",
        "message": answer.text[:200],
        "field": None,
        "expected": None,
    }
    with suppress(ValueError):
        body = answer.json()
        if isinstance(body, dict) and body.keys() == problem.keys():
            problem = body
    return ServiceError(answer.status_code, problem)


@contextmanager
def note_address() -> Iterator[None]:
    """Add the address to httpx's errors of connections, whose messages lack it."""
    try:
        yield
    except httpx.TransportError as error:
        error.add_note(f"the request was {error.request.method} {error.request.url}")
        raise


def _warn_of_normalised(fields: dict[str, Any]) -> None:
    """Warn of a z off the unit sphere, which is no skill: in its place one on the sphere was used.
    Older services report it for `act` only."""
    if fields.get("z_normalised"):
        warnings.warn("a z was not on the unit sphere and was normalised", stacklevel=6)


def _raw(tensors: dict[str, ArrayLike], others: dict[str, Any]) -> dict[str, Any]:
    arrays = {name: np.ascontiguousarray(numbers, FLOAT32) for name, numbers in tensors.items()}
    shapes = ",".join(f"{name}={'x'.join(map(str, array.shape))}" for name, array in arrays.items())
    fields = json.dumps({name: value for name, value in others.items() if value is not None})
    headers = {"content-type": "application/octet-stream", "x-tensors": shapes, "x-fields": fields}
    return {"content": b"".join(array.tobytes() for array in arrays.values()), "headers": headers}


def _tensors(answer: httpx.Response) -> dict[str, Array]:
    tensors = {}
    start = 0
    for entry in answer.headers["x-tensors"].split(","):
        name, _, sizes = entry.partition("=")
        shape = tuple(map(int, sizes.split("x")))
        count = int(np.prod(shape))
        tensors[name] = np.frombuffer(answer.content, FLOAT32, count, 4 * start).reshape(shape)
        start += count
    return tensors


def _embedding_of_raw(answer: httpx.Response) -> Embedding:
    return _embedding(_tensors(answer) | json.loads(answer.headers["x-fields"]))


def _embedding(fields: dict[str, Any]) -> Embedding:
    nearest = [(near["clip"], near["cosine"]) for near in fields["nearest"]]
    z, pooled = (np.asarray(fields[name], FLOAT32) for name in ("z", "pooled"))
    return Embedding(z, pooled, nearest, fields["window"])
