"""The service under random requests: how many have each class of status, and each that fails.

python -m benchmarks.fuzz_requests requests=100000 seed=0

In this process, over the bundled libraries. A failure is a 5xx, but for a 503 that is a Problem,
and a refusal that is no Problem; each is printed with its request. The exit status is 1 where there
is one.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from benchmarks.random_requests import Generator, Request
from pretrain.cli import program
from pretrain.options import parse_int, parse_options
from serving.app import make_gateway
from serving.settings import Settings
from serving.wire.problems import CODES
from skills_store.store import BUNDLED, Store

PROBLEM = {"code", "message", "field", "expected"}


@dataclass(frozen=True)
class Failure:
    number: int  # of the request, from 0
    request: Request
    status: int  # 0: the app raised
    reply: str
    cause: str  # the traceback that the service logged

    def __str__(self) -> str:
        return f"request {self.number}: {self.status} {self.reply}\n  {self.request}\n{self.cause}"


@dataclass
class Outcome:
    statuses: Counter[int] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)  # of Problems
    failures: list[Failure] = field(default_factory=list)
    defects: Counter[str] = field(default_factory=Counter)  # exceptions of the clip reader: 422

    def classes(self) -> dict[str, int]:
        """Requests per class of status: `2xx`, `4xx`, ..."""
        found: Counter[str] = Counter()
        for status, count in self.statuses.items():
            found[f"{status // 100}xx"] += count
        return dict(sorted(found.items()))


class Tracebacks(logging.Handler):
    """The last exception that the service logged as its own defect, and a count of the others."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self.others: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        raised = record.exc_info[1] if record.exc_info else None
        if raised is None:
            return
        if record.levelno >= logging.ERROR:
            self.last = "".join(traceback.format_exception(raised))
        else:
            self.others[f"{type(raised).__name__}: {raised}"] += 1


async def fuzz(requests: int, seed: int) -> Outcome:
    """Sends `requests` requests of `seed`, one after the other."""
    gateway = make_gateway(Settings(store=BUNDLED, refresh=3600.0, threads=1))
    generator = Generator(Store(BUNDLED), seed)
    outcome = Outcome()
    transport = httpx.ASGITransport(gateway)
    with _logged() as tracebacks:
        async with (
            gateway.api.router.lifespan_context(gateway.api),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            for number in range(requests):
                await _send(client, number, generator.request(), outcome, tracebacks)
    outcome.defects = tracebacks.others
    return outcome


@contextmanager
def _logged() -> Iterator[Tracebacks]:
    """The service's log goes to the handler, and not to the terminal."""
    log = logging.getLogger("repertoire.serving")
    handler = Tracebacks()
    propagated = log.propagate
    level = log.level
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(logging.WARNING)
    try:
        yield handler
    finally:
        log.propagate = propagated
        log.setLevel(level)
        log.removeHandler(handler)


async def _send(
    client: httpx.AsyncClient,
    number: int,
    request: Request,
    outcome: Outcome,
    tracebacks: Tracebacks,
) -> None:
    tracebacks.last = ""
    headers = httpx.Headers(list(request.headers.items()), encoding="latin-1")
    built = client.build_request(
        request.method,
        request.path,
        content=request.body,
        headers=headers,
    )
    try:
        response = await client.send(built)
    except Exception as error:
        cause = "".join(traceback.format_exception(error))
        outcome.statuses[0] += 1
        outcome.failures.append(Failure(number, request, 0, "the app raised", cause))
        return
    outcome.statuses[response.status_code] += 1
    code = _code(request, response)
    if code is not None:
        outcome.codes[code] += 1
    if _failed(request, response, code):
        text = response.text[:500]
        outcome.failures.append(
            Failure(number, request, response.status_code, text, tracebacks.last)
        )


def _code(request: Request, response: httpx.Response) -> str | None:
    """The Problem's code; None for anything that is no Problem, as the bodiless reply to HEAD."""
    if response.status_code < 400 or request.method == "HEAD":
        return None
    try:
        found: Any = response.json()
    except ValueError:
        return None
    if not isinstance(found, dict) or set(found) - {"error"} != PROBLEM:
        return None
    return found["code"] if found["code"] in CODES else None


def _failed(request: Request, response: httpx.Response, code: str | None) -> bool:
    if response.status_code >= 500 and response.status_code != 503:
        return True
    # a reply to HEAD has no body
    return request.method != "HEAD" and response.status_code >= 400 and code is None


def main(arguments: list[str]) -> int:
    try:
        options = parse_options(arguments, {"requests": "2000", "seed": "0"})
        requests = parse_int(options, "requests", 1)
        seed = parse_int(options, "seed", 0)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.CRITICAL)  # the form parser logs each malformed form
    started = time.monotonic()
    outcome = asyncio.run(fuzz(requests, seed))
    for failure in outcome.failures:
        print(failure)
    print(f"{requests} requests of seed {seed} in {time.monotonic() - started:.0f} s")
    print("status classes:", outcome.classes())
    print("statuses:", dict(sorted(outcome.statuses.items())))
    print("codes:", dict(outcome.codes.most_common()))
    print("exceptions of the clip reader:", dict(outcome.defects.most_common(20)))
    print("failures:", len(outcome.failures))
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
