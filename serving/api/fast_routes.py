"""The two routes that a control loop calls 30 times a second per character, from bytes to bytes.

`serving.server.gateway` calls them before FastAPI. `routes.py` only declares them to FastAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from serving import wire
from serving.api import act
from serving.models.service import Service
from serving.wire.reply import Reply

Headers = Mapping[bytes, bytes]  # lower-case names, as ASGI has them
CONTROLLERS = "/controllers/"
ACT = "/act"


@dataclass(frozen=True)
class FastRoute:
    path: str  # its template, as in the metrics
    answer: Callable[[Service, Headers, bytes], Awaitable[Reply]]


async def answer_act(service: Service, headers: Headers, body: bytes) -> Reply:
    """Joint targets for a state and a skill z. Raises Refusal."""
    started = perf_counter()
    encoding = wire.choose_encoding(headers)
    answer = await act.act(service, encoding.decode(body, headers))
    return encode_reply(encoding, answer, started)


async def answer_decide(controller: str, service: Service, headers: Headers, body: bytes) -> Reply:
    """The controller's z for a state and a goal, and its joint targets. Raises Refusal."""
    started = perf_counter()
    encoding = wire.choose_encoding(headers)
    answer = await act.decide(service, controller, encoding.decode(body, headers))
    return encode_reply(encoding, answer, started)


def encode_reply(encoding: wire.Encoding, answer: dict[str, Any], started: float) -> Reply:
    data, content_headers = encoding.encode(answer)
    milliseconds = (perf_counter() - started) * 1000
    timing = (b"server-timing", b"app;dur=%.3f" % milliseconds)
    digest = (b"x-skill-digest", str(answer["skill"]["digest"]).encode())
    return Reply(200, data, (*content_headers, digest, timing))


ACT_ROUTE = FastRoute(ACT, answer_act)


def find_fast_route(path: str) -> FastRoute | None:
    """The fast route of a path. For a controller's path, its name is bound to `answer`."""
    if path == ACT:
        return ACT_ROUTE
    if path.startswith(CONTROLLERS) and path.endswith(ACT) and path.count("/") == 3:
        name = path[len(CONTROLLERS) : -len(ACT)]
        return FastRoute("/controllers/{name}/act", partial(answer_decide, name))
    return None
