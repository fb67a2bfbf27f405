"""Reply: a framework-independent HTTP reply, and its conversion to Starlette's response."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

Headers = tuple[tuple[bytes, bytes], ...]  # lower-case names, as ASGI has them
JSON = (b"content-type", b"application/json")


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: Headers = ()

    def response(self) -> Response:
        answer = Response(self.body, self.status)
        answer.raw_headers = [*answer.raw_headers, *self.headers]
        return answer
