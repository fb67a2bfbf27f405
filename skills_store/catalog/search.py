"""Versions by what they are and how they measured: `survival>=0.9`. A metric is a number of the card, by its dotted key."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from skills_store.catalog.flatten import flatten_numbers
from skills_store.errors import InvalidCondition, StoreError, Unknown, UnknownCharacter, UnknownMetric, UnknownTask
from skills_store.store import Store
from skills_store.version import Fault, Summary, make_fault

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
CONDITION = re.compile(rf"\s*([^\s<>=!]+)\s*({'|'.join(COMPARE)})\s*([-+0-9.eE]+)\s*")


@dataclass(frozen=True)
class Condition:
    metric: str
    comparison: str
    value: float

    def holds(self, card: dict[str, float]) -> bool:
        """A version that was not measured does not pass."""
        return self.metric in card and COMPARE[self.comparison](card[self.metric], self.value)


@dataclass(frozen=True)
class Query:
    """None asks for nothing."""

    kind: str | None = None
    character: str | None = None
    task: str | None = None
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class SearchResult:
    summary: Summary
    metrics: dict[str, float]  # those that were asked about


def parse_condition(text: str) -> Condition:
    try:
        match = CONDITION.fullmatch(text)
        metric, comparison, value = match.groups() if match else ("", "", "")
        return Condition(metric, comparison, float(value))
    except ValueError as error:
        raise InvalidCondition(
            f"{text!r} compares nothing; write survival>=0.9, with one of {' '.join(COMPARE)}"
        ) from error


def search(store: Store, query: Query) -> tuple[tuple[SearchResult, ...], tuple[Fault, ...]]:
    """Newest first within each skill, and what could not be looked at. What no version has is refused by name."""
    surveys = [store.summaries(name) for name in store.names()]
    every = [summary for summaries, _ in surveys for summary in reversed(summaries)]
    _check_known(query.character, {s.character for s in every}, UnknownCharacter, store)
    _check_known(query.task, {s.task for s in every if s.task}, UnknownTask, store)
    wanted = [
        s
        for s in every
        if _matches(query.kind, s.kind) and _matches(query.character, s.character) and _matches(query.task, s.task)
    ]
    faults = [found for _, each in surveys for found in each]
    if not query.where:
        return tuple(SearchResult(summary, {}) for summary in wanted), tuple(faults)
    measured = []
    for summary in wanted:
        try:  # the index has no cards: only where they are asked about are manifests read
            measured.append((summary, flatten_numbers(store.resolve(summary.ref).manifest.card)))
        except StoreError as error:
            faults.append(make_fault(summary.ref, error))
    return tuple(_filter(measured, query.where, store)), tuple(faults)


def _filter(
    measured: Sequence[tuple[Summary, dict[str, float]]], where: Sequence[Condition], store: Store
) -> Iterator[SearchResult]:
    exist = {metric for _, card in measured for metric in card}
    for each in where if measured else ():
        _check_known(each.metric, exist, UnknownMetric, store)
    for summary, card in measured:
        if all(each.holds(card) for each in where):
            yield SearchResult(summary, {each.metric: card[each.metric] for each in where})


def _matches(asked: str | None, found: str | None) -> bool:
    return asked is None or asked == found


def _check_known(asked: str | None, exist: Iterable[str], error: type[Unknown], store: Store) -> None:
    names: Sequence[str] = sorted(exist)
    if asked is not None and asked not in names:
        raise error(asked, names, str(store.root))
