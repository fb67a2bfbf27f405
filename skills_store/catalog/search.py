"""Searches versions by properties and metrics: `survival>=0.9`. A metric is a number of the card,
by its dotted key.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from skills_store.catalog.flatten import flatten_numbers
from skills_store.errors import (
    InvalidCondition,
    StoreError,
    Unknown,
    UnknownCharacter,
    UnknownMetric,
    UnknownTask,
)
from skills_store.manifest import Manifest
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
        """A version without the metric does not pass."""
        return self.metric in card and COMPARE[self.comparison](card[self.metric], self.value)


@dataclass(frozen=True)
class Query:
    """None: no condition. `word` is a part of a name, a task or a clip, case-insensitive."""

    word: str | None = None
    kind: str | None = None
    character: str | None = None
    task: str | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class SearchResult:
    summary: Summary
    metrics: dict[str, float]  # the figures of the query's conditions
    matches: tuple[str, ...] = ()  # what the word was found in: "task reach", "clip run"


@dataclass(frozen=True)
class Candidate:
    """A version that may match the query, with its manifest if the query needs it."""

    summary: Summary
    manifest: Manifest | None


def parse_condition(text: str) -> Condition:
    try:
        match = CONDITION.fullmatch(text)
        metric, comparison, value = match.groups() if match else ("", "", "")
        return Condition(metric, comparison, float(value))
    except ValueError as error:
        comparisons = " ".join(COMPARE)
        raise InvalidCondition(
            f"{text!r} compares nothing; write survival>=0.9, with one of {comparisons}"
        ) from error


def search(store: Store, query: Query) -> tuple[tuple[SearchResult, ...], tuple[Fault, ...]]:
    """Matches, newest first within each skill, and faults of unreadable versions. Raises Unknown
    for a character, task or metric that no version has.
    """
    summaries, faults = _list_summaries(store)
    location = str(store.root)
    _check_known(query.character, [s.character for s in summaries], UnknownCharacter, location)
    _check_known(query.task, [s.task for s in summaries if s.task], UnknownTask, location)
    chosen = [summary for summary in summaries if _has_properties(summary, query)]
    candidates, damaged = _read_manifests(store, chosen, query)
    results = _check_conditions(_find_word(candidates, query.word), query.conditions, location)
    return tuple(results), (*faults, *damaged)


def _list_summaries(store: Store) -> tuple[list[Summary], list[Fault]]:
    summaries: list[Summary] = []
    faults: list[Fault] = []
    for name in store.names():
        skill_summaries, damaged = store.summaries(name)
        summaries += reversed(skill_summaries)
        faults += damaged
    return summaries, faults


def _has_properties(summary: Summary, query: Query) -> bool:
    filters = (query.kind, query.character, query.task)
    properties = (summary.kind, summary.character, summary.task)
    return all(a is None or a == f for a, f in zip(filters, properties, strict=True))


def _read_manifests(
    store: Store, summaries: Sequence[Summary], query: Query
) -> tuple[list[Candidate], list[Fault]]:
    """The index has neither cards nor clips: manifests are read only for a query about these."""
    if query.word is None and not query.conditions:
        return [Candidate(summary, None) for summary in summaries], []
    candidates = []
    faults = []
    for summary in summaries:
        try:
            candidates.append(Candidate(summary, store.resolve(summary.ref).manifest))
        except StoreError as error:
            faults.append(make_fault(summary.ref, error))
    return candidates, faults


def _find_word(
    candidates: Iterable[Candidate], word: str | None
) -> list[tuple[Candidate, tuple[str, ...]]]:
    """Candidates that contain `word`, and where; all if no word is given."""
    if word is None:
        return [(candidate, ()) for candidate in candidates]
    hits = []
    for candidate in candidates:
        if matches := _list_matches(candidate, word.lower()):
            hits.append((candidate, matches))
    return hits


def _list_matches(candidate: Candidate, word: str) -> tuple[str, ...]:
    summary = candidate.summary
    texts = [("name", summary.name), ("task", summary.task or "")]
    if candidate.manifest is not None:
        trained = [clip.name for clip in candidate.manifest.lineage.clips]
        clips = dict.fromkeys([*candidate.manifest.latent.clips, *trained])
        texts += [("clip", clip) for clip in clips]
    return tuple(f"{kind} {text}" for kind, text in texts if word in text.lower())


def _check_conditions(
    hits: Sequence[tuple[Candidate, tuple[str, ...]]], conditions: Sequence[Condition], store: str
) -> Iterator[SearchResult]:
    """Candidates whose cards meet every condition. UnknownMetric for a metric that none has."""
    cards = [
        flatten_numbers(candidate.manifest.card) if candidate.manifest else {}
        for candidate, _ in hits
    ]
    exist = set[str]().union(*cards)
    for condition in conditions if hits else ():
        _check_known(condition.metric, exist, UnknownMetric, store)
    for (candidate, matches), card in zip(hits, cards, strict=True):
        if all(condition.holds(card) for condition in conditions):
            metrics = {condition.metric: card[condition.metric] for condition in conditions}
            yield SearchResult(candidate.summary, metrics, matches)


def _check_known(
    name: str | None, exist: Iterable[str], error: type[Unknown], location: str
) -> None:
    names = sorted(set(exist))
    if name is not None and name not in names:
        raise error(name, names, location)
