"""Search by word, kind, character, task and metric; unknown terms list the existing ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skills_store.__main__ import main
from skills_store.catalog.search import COMPARE, Condition, Query, parse_condition, search
from skills_store.errors import InvalidCondition, UnknownCharacter, UnknownMetric, UnknownTask
from skills_store.store import Store
from tests import tiny

CARDS: list[dict[str, Any]] = [
    {"survival": 0.85, "coverage": 0.7},
    {"survival": 0.9, "coverage": 0.5, "diversity": {"ratio": 0.4}},
    {"survival": 0.95, "coverage": 0.65, "diversity": {"ratio": 0.6}},
    {},
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    for card in CARDS:
        store.publish(tiny.skills_manifest().model_copy(update={"card": card}), tiny.skills_files())
    toy = tiny.character().model_copy(update={"name": "toy"})
    store.publish(
        tiny.skills_manifest("toy").model_copy(update={"character": toy}), tiny.skills_files()
    )
    tiny.publish_tiny_controller(store, store.resolve("humanoid@1"))
    return store


def found(store: Store, *where: str, **fields: str) -> list[str]:
    hits, faults = search(store, Query(**fields, conditions=tuple(map(parse_condition, where))))  # type: ignore[arg-type]
    assert faults == ()
    return [hit.summary.ref for hit in hits]


def test_search_filters_by_kind_character_and_task(store: Store) -> None:
    everything = ["humanoid@4", "humanoid@3", "humanoid@2", "humanoid@1", "reach@1", "toy@1"]
    assert found(store) == everything
    assert found(store, kind="skills", character="humanoid") == everything[:4]
    assert found(store, character="toy") == ["toy@1"]
    assert found(store, task="reach") == ["reach@1"]
    assert found(store, kind="skills", task="reach") == []


@pytest.mark.parametrize("comparison", COMPARE)
@pytest.mark.parametrize("value", [0.85, 0.9, 0.91])
def test_search_filters_by_metric_comparison(store: Store, comparison: str, value: float) -> None:
    expected = [
        n
        for n, c in enumerate(CARDS, 1)
        if "survival" in c and COMPARE[comparison](c["survival"], value)
    ]
    refs = found(store, f"survival{comparison}{value}", character="humanoid", kind="skills")
    assert refs == [f"humanoid@{n}" for n in reversed(expected)]


def test_a_word_is_found_in_names_tasks_and_clips(store: Store) -> None:
    def matches(word: str) -> dict[str, tuple[str, ...]]:
        return {hit.summary.ref: hit.matches for hit in search(store, Query(word))[0]}

    assert matches("reach") == {"reach@1": ("name reach", "task reach")}
    assert matches("oy") == {"toy@1": ("name toy",)}
    assert set(matches("WALK")) == {"humanoid@4", "humanoid@3", "humanoid@2", "humanoid@1", "toy@1"}
    assert matches("WALK")["toy@1"] == ("clip walk",)
    assert matches("swim") == {}


def test_word_and_options_are_combined(store: Store) -> None:
    assert found(store, word="walk", character="toy") == ["toy@1"]
    assert found(store, "survival>=0.95", word="human") == ["humanoid@3"]
    assert found(store, word="reach", kind="skills") == []


def test_conditions_are_combined(store: Store) -> None:
    assert found(store, "survival>=0.9", "coverage > 0.6", kind="skills") == ["humanoid@3"]
    assert found(store, "diversity.ratio<0.5") == ["humanoid@2"]


def test_unknown_search_term_error_lists_the_existing_ones(store: Store) -> None:
    with pytest.raises(
        UnknownMetric,
        match=r"no metric 'survivl' .*did you mean 'survival'\? .*coverage, diversity\.ratio",
    ):
        found(store, "survivl>=0.9")
    with pytest.raises(UnknownCharacter, match=r"did you mean 'humanoid'.*humanoid, toy"):
        found(store, character="humanoit")
    with pytest.raises(UnknownTask, match="there are: reach"):
        found(store, task="strike")


@pytest.mark.parametrize(
    "text", ["", "survival", ">=0.9", "survival>=", "survival>=high", "survival=>0.9", "a b>1"]
)
def test_malformed_condition_is_refused(text: str) -> None:
    with pytest.raises(InvalidCondition, match=r"write survival>=0\.9"):
        parse_condition(text)


def test_condition_parses_metric_comparison_and_value() -> None:
    assert parse_condition("coverage_per_clip.0walk-fwd <= -1e-3") == Condition(
        "coverage_per_clip.0walk-fwd", "<=", -0.001
    )


def test_search_reports_damaged_versions_and_finds_the_rest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seed in range(2):
        tiny.publish_tiny(store, seed=seed)
    blob = tmp_path / "blobs/sha256" / store.resolve("humanoid@1").digest.removeprefix("sha256:")
    blob.chmod(0o644)
    blob.write_bytes(b"rot")
    hits, faults = search(store, Query(conditions=(parse_condition("survival>0"),)))
    assert [hit.summary.ref for hit in hits] == ["humanoid@2"]
    assert [fault.ref for fault in faults] == ["humanoid@1"]


def test_search_command_filters_by_metric(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "--store",
        str(store.root),
        "search",
        "--character",
        "humanoid",
        "--where",
        "survival>=0.9",
    ]
    assert main(argv) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[-1] == "SURVIVAL"
    assert [row.split()[1::7][:1] for row in rows] == [["3"], ["2"]]
    assert main([*argv, "--json"]) == 0
    versions = json.loads(capsys.readouterr().out)["versions"]
    assert [(v["ref"], v["metrics"]) for v in versions] == [
        ("humanoid@3", {"survival": 0.95}),
        ("humanoid@2", {"survival": 0.9}),
    ]
    assert main([*argv, "--where", "speed>1"]) == 2
    assert "there are: coverage, diversity.ratio, survival" in capsys.readouterr().err
    assert main([*argv, "--where", "survival>2"]) == 0
    assert capsys.readouterr().err == "no version matches\n"


def test_search_command_takes_a_word(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--store", str(store.root), "search"]
    assert main([*argv, "reach"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.endswith("FOUND IN")
    assert row.endswith("name reach, task reach")
    assert main([*argv, "reach", "--json"]) == 0
    [version] = json.loads(capsys.readouterr().out)["versions"]
    assert (version["ref"], version["matches"]) == ("reach@1", ["name reach", "task reach"])
    assert main([*argv, "swim"]) == 0
    assert capsys.readouterr().err == "no version matches\n"
    assert main([*argv, " "]) == 2
    assert "is no word to search for" in capsys.readouterr().err
