"""Hot: the routes that a control loop asks 30 times a second per character. One answer, whatever carries it.

FastAPI's route of the same path and the connection itself (`connection.py`) both call this, so both give the same
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

from serving import act, wire
from serving.reply import Reply
from serving.service import Service

CONTROLLERS, ACT = "/controllers/", "/act"


@dataclass(frozen=True)
class Hot:
    service: Service

    def route(self, path: str) -> str | None:
        """The path's template, if it is one of these."""
        if path == ACT:
            return ACT
        if path.startswith(CONTROLLERS) and path.endswith(ACT) and path.count("/") == 3:
            return "/controllers/{name}/act"
        return None

    async def answer(self, path: str, headers: Mapping[bytes, bytes], body: bytes) -> Reply:
        """Raises Refusal."""
        started = perf_counter()
        encoding = wire.of(headers)
        fields = encoding.decode(body, headers)
        if path == ACT:
            found = await act.act(self.service, fields)
        else:
            found = await act.decide(self.service, path[len(CONTROLLERS) : -len(ACT)], fields)
        data, described = encoding.encode(found)
        timing = b"app;dur=%.3f" % ((perf_counter() - started) * 1000)
        digest = str(found["skill"]["digest"]).encode()
        return Reply(200, data, (*described, (b"x-skill-digest", digest), (b"server-timing", timing)))
