"""The table: measures in the order of their importance, a column a library."""

from __future__ import annotations

import pytest

from pretrain.evaluation.table import NOTHING, table, value_at


def card(**clips: float) -> dict:
    return {
        "falls_per_minute": {"own": 1.25, "random": None, "per_clip": {}},
        "time_on_clip": {"mean": 0.5, "least": min(clips.values()), "per_clip": clips},
        "switch_success": {"mean": 0.75, "matrix": {}},
        "steering": {"forward_speed": [-0.5, 3.0], "stands": True},
        "coverage": 0.9,
    }


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return table({"a@1": card(walk=0.25), "b@2": card(walk=0.5, jump=1.0)}).splitlines()


def line(lines: list[str], label: str) -> list[str]:
    (found,) = (each for each in lines if each.startswith(label))
    return found.removeprefix(label).split()


def test_the_most_important_measures_come_first(lines):
    assert lines[0].split() == ["a@1", "b@2"]
    labels = ["falls a minute, own z", "time on clip under own z", "switch success", "stands"]
    places = [next(i for i, each in enumerate(lines) if each.startswith(x)) for x in labels]
    assert places == sorted(places)
    assert places[0] == 1


def test_libraries_are_compared_by_all_clips_of_any(lines):
    assert line(lines, "  walk") == ["0.25", "0.50"]
    assert line(lines, "  jump") == [NOTHING, "1.00"]
    assert lines[-1] == f"{NOTHING}: nothing to measure"


def test_ranges_and_booleans_are_written_in_words(lines):
    assert line(lines, "forward speed, m/s") == ["-0.50", "to", "3.00"] * 2
    assert line(lines, "stands") == ["yes", "yes"]


def test_a_measure_that_no_card_has_is_left_out(lines):
    assert not any("survival" in each or "fidelity" in each for each in lines)


def test_cost_counts_the_samples_of_all_parents():
    first = {"samples": 3_000_000, "seconds": 600, "cores": 2}
    second = {"samples": 2_000_000, "seconds": 300, "cores": 2, "parent": first}
    third = {"samples": 1_000_000, "seconds": 60, "cores": 1, "parent": second}
    lines = table({"a@1": card(walk=0.2) | {"cost": third}}).splitlines()
    cells = " ".join(line(lines, "samples, time x cores"))
    assert cells == "1.0 M, 1 min x 1 after 5.0 M"


def test_dotted_path_reads_nested_values():
    assert value_at({"a": {"b": 1}}, "a.b") == 1
    assert value_at({"a": 1}, "a.b") is None
    assert value_at({}, "a") is None
