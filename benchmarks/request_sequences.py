"""Random sequences of requests, with and without valid keys: each reply must belong to its own
request, with the status that a model of the access rules expects.

    python -m benchmarks.request_sequences --requests 1000000

Requests with and without keys and scopes, of several routes, are pipelined on several connections
with empty lines between them, and arrive cut at any byte. The protocol and the application are the
service's own; only the network is replaced, so that the cuts are exact. Prints how many requests
were sent, by status, and the first reply that is wrong."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from uvicorn.server import ServerState

from serving.access import keys
from serving.app import make_gateway
from serving.server.connection_limits import LimitedProtocol
from serving.server.gateway import Gateway
from serving.settings import Settings
from skills_store.runtime.library import SkillLibrary
from skills_store.store import BUNDLED, Store

BODIES = 8
LONGEST_WAIT = 60.0  # s for the replies of one connection, for a busy machine
ACT: keys.Scope = "act"
ENCODE: keys.Scope = "encode"
SCOPES: dict[str, tuple[keys.Scope, ...]] = {
    "player": (ACT,),
    "library": (ENCODE,),
    "both": (ACT, ENCODE),
}
WRONG_KEY = "player." + "A" * 43


@dataclass(frozen=True)
class Sent:
    """One request: its bytes, and what the reply must be."""

    data: bytes
    status: int
    targets: np.ndarray | None  # of the reply, where it has any
    closes: bool  # the connection ends with the reply


@dataclass(frozen=True)
class World:
    """A service with keys, and bodies of /act with their targets."""

    gateway: Gateway
    tokens: dict[str, str]  # key name -> key
    bodies: list[bytes]
    targets: list[np.ndarray]


class Pipe(asyncio.Transport):
    """A transport that keeps what the protocol writes, without a network."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self._closing = True

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def expect_status(route: str, key: str | None, is_json: bool) -> int:
    """The model: the status of a request, from its route, key and body alone."""
    if route == "/healthz":
        return 200
    if key is None or key == WRONG_KEY:
        return 401
    name = key.partition(".")[0]
    if route == "/act":
        if ACT not in SCOPES[name]:
            return 403
        return 200 if is_json else 422
    return 200


def make_request(world: World, rng: np.random.Generator) -> Sent:
    route = str(rng.choice(["/act", "/act", "/act", "/healthz", "/skills"]))
    known = [None, WRONG_KEY, *world.tokens.values()]
    key = known[rng.integers(len(known))]
    index = int(rng.integers(BODIES))
    is_json = bool(rng.random() < 0.8)
    is_post = route == "/act"
    body = world.bodies[index] if is_json else b"x" * len(world.bodies[index])
    closes = bool(rng.random() < 0.03)
    lines = [f"{'POST' if is_post else 'GET'} {route} HTTP/1.1", "host: localhost"]
    if key is not None:
        lines.append(f"authorization: Bearer {key}")
    if closes:
        lines.append("connection: close")
    chunked = is_post and rng.random() < 0.2
    if chunked:
        lines.append("transfer-encoding: chunked")
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    elif is_post:
        lines.append(f"content-length: {len(body)}")
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    data = b"\r\n" * int(rng.choice([0, 0, 1, 2])) + head + (body if is_post else b"")
    status = expect_status(route, key, is_json)
    targets = world.targets[index] if route == "/act" and status == 200 else None
    return Sent(data, status, targets, closes)


def make_conversation(world: World, rng: np.random.Generator) -> list[Sent]:
    """Requests of one connection; the last may close it."""
    requests: list[Sent] = []
    for _ in range(int(rng.integers(1, 12))):
        requests.append(make_request(world, rng))
        if requests[-1].closes:
            break
    return requests


def cut(data: bytes, rng: np.random.Generator) -> list[bytes]:
    """`data` in pieces, some of one byte."""
    count = int(rng.integers(0, 12))
    places = sorted({0, len(data), *rng.integers(0, len(data) + 1, count).tolist()})
    if rng.random() < 0.3:
        start = int(rng.integers(0, len(data)))
        places = sorted({*places, *range(start, min(len(data), start + 5))})
    return [data[a:b] for a, b in pairwise(places)]


async def converse(
    world: World, config: uvicorn.Config, requests: list[Sent], rng: np.random.Generator
) -> list[bytes]:
    """Send the requests of one connection, and return the replies."""
    protocol = config.http_protocol_class(config=config, server_state=ServerState(), app_state={})  # type: ignore[call-arg]
    pipe = Pipe()
    protocol.connection_made(pipe)
    for piece in cut(b"".join(sent.data for sent in requests), rng):
        protocol.data_received(piece)
        for _ in range(int(rng.integers(0, 4))):
            await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LONGEST_WAIT
    while len(split_replies(bytes(pipe.written))) < len(requests) and loop.time() < deadline:
        await asyncio.sleep(0.0005)
    protocol.connection_lost(None)
    return split_replies(bytes(pipe.written))


def split_replies(data: bytes) -> list[bytes]:
    """The complete replies in `data`."""
    replies: list[bytes] = []
    while b"\r\n\r\n" in data:
        head, _, rest = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(rest) < length:
            break
        replies.append(head + b"\r\n\r\n" + rest[:length])
        data = rest[length:]
    return replies


def find_fault(sent: Sent, reply: bytes) -> str | None:
    status = int(reply.split(b" ", 2)[1])
    if status != sent.status:
        return f"status {status} where {sent.status} belongs"
    if sent.targets is None:
        return None
    body = json.loads(reply.partition(b"\r\n\r\n")[2])
    same = np.allclose(body["targets"], sent.targets, atol=1e-4)  # a batch rounds differently
    return None if same else "targets of another request"


async def run_sequences(world: World, requests: int, seed: int) -> Counter[int]:
    """Requests by status. Raises AssertionError with the conversation at fault."""
    config = make_config(world.gateway)
    rng = np.random.default_rng(seed)
    counts: Counter[int] = Counter()
    api = world.gateway.api
    async with api.router.lifespan_context(api):
        while counts.total() < requests:
            conversations = [make_conversation(world, rng) for _ in range(4)]
            running = [converse(world, config, one, rng) for one in conversations]
            received = await asyncio.gather(*running)
            for sent, replies in zip(conversations, received, strict=True):
                check(sent, replies)
                counts.update(one.status for one in sent)
    return counts


def check(requests: list[Sent], replies: list[bytes]) -> None:
    shown = [sent.data for sent in requests]
    assert len(replies) == len(requests), (
        f"{len(replies)} replies to {len(requests)} requests: {shown}"
    )
    for sent, reply in zip(requests, replies, strict=True):
        fault = find_fault(sent, reply)
        assert fault is None, f"{fault}: {sent.data!r} got {reply!r}, among {shown}"


def make_config(gateway: Gateway) -> uvicorn.Config:
    protocol = partial(LimitedProtocol, request_timeout=60.0, max_connections=64)
    config = uvicorn.Config(
        gateway,
        http=protocol,  # type: ignore[arg-type]  # uvicorn only calls it
        ws="none",
        access_log=False,
        log_config=None,
        proxy_headers=False,
    )
    config.load()
    return config


def make_world(folder: Path) -> World:
    """The bundled libraries under keys of each kind, and /act bodies with their targets."""
    made = {name: keys.make_key(name, scopes) for name, scopes in SCOPES.items()}
    file = folder / "keys.json"
    keys.write(file, [key for _, key in made.values()])
    tokens = {name: token for name, (token, _) in made.items()}
    rng = np.random.default_rng(0)
    library = SkillLibrary.open(Store(BUNDLED), "humanoid")
    state = rng.standard_normal((BODIES, library.state_width)).astype(np.float32)
    state[:, 3:7] /= np.linalg.norm(state[:, 3:7], axis=1, keepdims=True)
    z = rng.standard_normal((BODIES, library.latent_dim)).astype(np.float32)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    bodies = [
        json.dumps({"state": s.tolist(), "z": d.tolist()}).encode()
        for s, d in zip(state, z, strict=True)
    ]
    gateway = make_gateway(Settings(store=BUNDLED, keys=file, refresh=3600.0))
    return World(gateway, tokens, bodies, list(library.act(state, z)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        counts = asyncio.run(run_sequences(world, given.requests, given.seed))
    found: dict[str, Any] = {
        "requests": counts.total(),
        "by_status": dict(sorted(counts.items())),
        "wrong": 0,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
