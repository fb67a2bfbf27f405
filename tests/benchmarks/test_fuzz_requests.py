"""Random requests over all routes are answered or refused, and a planted defect is found."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.fuzz_requests import fuzz, main
from benchmarks.random_requests import Generator
from serving.wire import rows
from skills_store.store import BUNDLED, Store

ROUTES = (
    *("/act", "/encode", "/interpolate", "/controllers/reach/act", "/infer"),
    *("/skills/", "/v2/models/", "/readyz"),
)
CONTROLLERS = ("heading", "location", "path", "reach", "speed", "stand")
# Of a form that ends within a file, Starlette leaves the file to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def first(count: int, seed: int) -> list[str]:
    generator = Generator(Store(BUNDLED), seed)
    return [str(generator.request()) for _ in range(count)]


def test_two_thousand_random_requests_are_answered_or_refused() -> None:
    outcome = asyncio.run(fuzz(2000, seed=1))
    assert [str(failure) for failure in outcome.failures] == []
    assert sum(outcome.statuses.values()) == 2000
    assert outcome.classes()["2xx"] > 400
    assert outcome.classes()["4xx"] > 400
    assert len(outcome.codes) > 20  # refusals of many kinds


def test_requests_are_deterministic_per_seed() -> None:
    assert first(50, seed=3) == first(50, seed=3)
    assert first(50, seed=3) != first(50, seed=4)


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_is_requested(route: str) -> None:
    assert any(route in request.splitlines()[0] for request in first(300, seed=5))


def test_a_defect_is_found_with_its_request_and_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    read = rows.read

    def broken(value: object, spec: rows.InputSpec) -> rows.Rows:
        if spec.field == "goal":
            raise ZeroDivisionError("planted")
        return read(value, spec)

    monkeypatch.setattr(rows, "read", broken)
    outcome = asyncio.run(fuzz(150, seed=1))
    assert outcome.classes()["5xx"] == len(outcome.failures) > 0
    for failure in outcome.failures:
        assert failure.status == 500
        assert any(f"/{name}" in failure.request.path for name in CONTROLLERS)
        assert "ZeroDivisionError: planted" in failure.cause


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("requests=0", "at least 1"),
        ("seed=x", "not a whole number"),
        ("count=3", "unknown key count"),
    ],
)
def test_invalid_argument_is_refused(
    argument: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([argument]) == 2
    assert message in capsys.readouterr().err


def test_the_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["requests=30", "seed=2"]) == 0
    printed = capsys.readouterr().out
    assert "30 requests of seed 2" in printed
    assert "failures: 0" in printed
