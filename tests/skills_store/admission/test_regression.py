"""A protected alias does not move to a version with worse measures unless forced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skills_store.__main__ import main
from skills_store.errors import CorruptRecord, Regression, UnknownAlias
from skills_store.store import Store, Version
from tests import tiny

GOOD = {"survival": 0.9, "coverage": 0.5}
MEASURED = {  # a card that counts falls
    **GOOD,
    "falls_per_minute": {"own": 0.5, "random": 1.0},
    "time_on_clip": {"mean": 0.8, "least": 0.4},
    "switch_success": {"mean": 0.7},
    "detail": {"survival": {"n": 1024}},
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def publish(store: Store, seed: int, card: dict[str, Any]) -> Version:
    manifest = tiny.skills_manifest().model_copy(update={"card": card})
    return store.publish(manifest, tiny.skills_files(seed))


@pytest.mark.parametrize("measure", list(GOOD))
@pytest.mark.parametrize("value", [-0.01, None])
def test_prod_refuses_a_regression_unless_forced(
    store: Store, measure: str, value: float | None
) -> None:
    publish(store, 0, GOOD)
    lower = (
        {**GOOD, measure: GOOD[measure] + value}
        if value is not None
        else {k: v for k, v in GOOD.items() if k != measure}
    )
    publish(store, 1, lower)
    store.alias("humanoid", "prod", 1)
    with pytest.raises(Regression, match=measure) as refused:
        store.alias("humanoid", "prod", 2)
    assert len(refused.value.worse) == 1
    assert store.resolve("humanoid@prod").number == 1
    assert store.alias("humanoid", "canary", 2).number == 2  # only prod is guarded
    assert store.alias("humanoid", "prod", 2, "we know", force=True).number == 2


@pytest.mark.parametrize(
    ("measure", "worse"),
    [
        (
            "falls_per_minute.own, 0.6 instead of 0.5",
            {"falls_per_minute": {"own": 0.6, "random": 1.0}},
        ),
        (
            "falls_per_minute.random, 1.1 instead of 1",
            {"falls_per_minute": {"own": 0.5, "random": 1.1}},
        ),
        (
            "falls_per_minute.own, which its card lacks",
            {"falls_per_minute": {"random": 1.0}},
        ),
        ("time_on_clip.mean, 0.79 instead of 0.8", {"time_on_clip": {"mean": 0.79, "least": 0.4}}),
        ("time_on_clip.least, 0.3 instead of 0.4", {"time_on_clip": {"mean": 0.9, "least": 0.3}}),
        ("switch_success.mean, 0.6 instead of 0.7", {"switch_success": {"mean": 0.6}}),
        ("survival.n, 1020 instead of 1024", {"detail": {"survival": {"n": 1020}}}),
    ],
)
def test_library_with_one_worse_measure_is_a_regression(
    store: Store, measure: str, worse: dict[str, Any]
) -> None:
    publish(store, 0, MEASURED)
    publish(store, 1, {**MEASURED, **worse})
    store.alias("humanoid", "prod", 1)
    with pytest.raises(Regression, match=measure) as refused:
        store.alias("humanoid", "prod", 2)
    assert len(refused.value.worse) == 1


def test_fewer_falls_outweigh_lower_survival(store: Store) -> None:
    """Survival ignores a fall with a recovery, and coverage needs only one pass."""
    publish(store, 0, MEASURED)
    better = {"falls_per_minute": {"own": 0.1, "random": 0.2}, "survival": 0.8, "coverage": 0.4}
    publish(store, 1, {**MEASURED, **better})
    store.alias("humanoid", "prod", 1)
    assert store.alias("humanoid", "prod", 2).number == 2


def test_survival_is_compared_if_old_card_has_no_falls(
    store: Store,
) -> None:
    publish(store, 0, GOOD)
    publish(store, 1, MEASURED)
    publish(store, 2, {**MEASURED, "survival": 0.8})
    store.alias("humanoid", "prod", 1)
    with pytest.raises(Regression, match=r"survival, 0\.8 instead of 0\.9"):
        store.alias("humanoid", "prod", 3)
    assert store.alias("humanoid", "prod", 2).number == 2
    with pytest.raises(Regression, match=r"falls_per_minute\.own, which its card lacks"):
        store.alias("humanoid", "prod", 1)


@pytest.mark.parametrize("value", ["0.95", True, None, [1]])
def test_non_numeric_measure_is_a_regression(store: Store, value: object) -> None:
    publish(store, 0, GOOD)
    publish(store, 1, {**GOOD, "survival": value})
    store.alias("humanoid", "prod", 1)
    with pytest.raises(Regression, match="survival, which its card lacks"):
        store.alias("humanoid", "prod", 2)


def test_alias_does_not_move_to_a_version_of_another_kind(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an older store, in which a name could change its kind."""
    monkeypatch.setattr(Store, "check_kind", lambda *_: None)
    publish(store, 0, GOOD)
    store.alias("humanoid", "prod", 1)
    library = store.resolve("humanoid@1")
    controller = tiny.controller_manifest(library).model_copy(update={"name": "humanoid"})
    store.publish(controller, {"controller.onnx": tiny.controller(0)})
    with pytest.raises(Regression, match="it is of kind 'controller' and not 'skills'"):
        store.alias("humanoid", "prod", 2)


def test_prod_moves_to_versions_that_are_no_worse(store: Store) -> None:
    publish(store, 0, {})
    publish(store, 1, GOOD)
    publish(store, 2, {**GOOD, "survival": 0.95})
    for number in (1, 2, 3):
        assert store.alias("humanoid", "prod", number).number == number


def test_any_alias_can_be_protected_and_prod_unprotected(store: Store) -> None:
    publish(store, 0, GOOD)
    publish(store, 1, {**GOOD, "survival": 0.2})
    for alias in ("stable", "prod"):
        store.alias("humanoid", alias, 1)
    assert store.list_protected("humanoid") == {"prod"}
    store.protect("humanoid", "stable", "robots in the field")
    with pytest.raises(Regression, match="humanoid@stable stays at humanoid@1"):
        store.alias("humanoid", "stable", 2)
    store.protect("humanoid", "prod", on=False)
    assert store.alias("humanoid", "prod", 2).number == 2
    assert store.list_protected("humanoid") == {"stable"}


def test_protection_persists_across_moves_and_rollbacks(store: Store) -> None:
    publish(store, 0, GOOD)
    publish(store, 1, {**GOOD, "survival": 0.95})
    publish(store, 2, {**GOOD, "survival": 0.2})
    store.alias("humanoid", "stable", 1)
    store.alias("humanoid", "stable", 2)
    store.protect("humanoid", "stable")
    # Undoes the last move, not the protection.
    assert store.rollback("humanoid", "stable").number == 1
    with pytest.raises(Regression):
        store.alias("humanoid", "stable", 3)
    assert store.alias("humanoid", "stable", 3, force=True).number == 3
    assert store.list_protected("humanoid") == {"stable"}


@pytest.mark.parametrize("protected", [True, False])
def test_unreadable_protection_counts_as_protected(store: Store, protected: bool) -> None:
    publish(store, 0, GOOD)
    publish(store, 1, {**GOOD, "survival": 0.2})
    store.alias("humanoid", "canary", 1)
    store.protect("humanoid", "canary", on=protected)
    file = store.root / "skills/humanoid/moves/canary/00000002.json"
    file.chmod(0o644)
    file.write_bytes(b"rot")
    for move in (
        lambda: store.alias("humanoid", "canary", 2),
        lambda: store.rollback("humanoid", "canary"),
        lambda: store.protect("humanoid", "canary", on=False),
    ):
        with pytest.raises(
            CorruptRecord,
            match=r"humanoid@canary is refused: its canary/00000002\.json .*--force` repairs",
        ):
            move()
    assert len(store.log("humanoid")) == 1
    assert store.alias("humanoid", "canary", 1, force=True).number == 1
    assert store.list_protected("humanoid") == {"canary"}
    with pytest.raises(Regression):
        store.alias("humanoid", "canary", 2)
    store.protect("humanoid", "canary", on=False)
    assert store.alias("humanoid", "canary", 2).number == 2


def test_protecting_an_unknown_alias_is_refused(store: Store) -> None:
    publish(store, 0, GOOD)
    store.alias("humanoid", "stable", 1)
    with pytest.raises(UnknownAlias, match="stable"):
        store.protect("humanoid", "stabel")


def test_protect_command_is_logged(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    publish(store, 0, GOOD)
    where = ["--store", str(store.root)]
    for command in (
        ["alias", "humanoid", "stable", "1"],
        ["protect", "humanoid", "stable", "--why", "robots"],
        ["alias", "humanoid"],
        ["protect", "humanoid", "stable", "--off"],
        ["log", "humanoid"],
    ):
        assert main([*where, *command]) == 0
    out = capsys.readouterr().out
    assert [word in out for word in ("1        protected", "protect: robots", "unprotect")] == [
        True
    ] * 3


def test_alias_command_names_the_measure_and_takes_force(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(store, 0, GOOD)
    publish(store, 1, {**GOOD, "survival": 0.2})
    where = ["--store", str(store.root)]
    assert main([*where, "alias", "humanoid", "prod", "1"]) == 0
    assert main([*where, "alias", "humanoid", "prod", "2"]) == 2
    err = capsys.readouterr().err
    assert "survival, 0.2 instead of 0.9" in err
    assert "--force" in err
    assert main([*where, "alias", "humanoid", "prod", "2", "--force"]) == 0


def test_only_a_forced_regression_is_marked(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(store, 0, GOOD)
    publish(store, 1, {**GOOD, "survival": 0.2})
    store.alias("humanoid", "canary", 2, force=True)  # not protected
    store.alias("humanoid", "prod", 1)
    store.alias("humanoid", "prod", 2, "we know", force=True)
    where = ["--store", str(store.root), "log", "humanoid"]
    assert main([*where, "--json"]) == 0
    assert [move["forced"] for move in json.loads(capsys.readouterr().out)] == [False, False, True]
    assert main(where) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("forced: we know")


def test_only_a_forced_move_has_the_field_forced(store: Store) -> None:
    publish(store, 0, GOOD)
    store.alias("humanoid", "prod", 1)
    store.alias("humanoid", "prod", 1, force=True)
    moves = sorted((store.root / "skills/humanoid/moves/prod").iterdir())
    assert ["forced" in json.loads(move.read_bytes()) for move in moves] == [False, True]


def test_output_escapes_control_characters_and_newlines(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(store, 0, {"odd\x1b[2J": "\x1b]0;title\x07", "survival": 0.5})
    where = ["--store", str(store.root)]
    assert (
        main(
            [
                *where,
                "alias",
                "humanoid",
                "prod",
                "1",
                "--why",
                "ok\n2026-01-01 00:00:00  prod  1  9",
            ]
        )
        == 0
    )
    for command in (["log", "humanoid"], ["show", "humanoid"], ["alias", "humanoid"]):
        assert main([*where, *command]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "ok\\n2026-01-01" in out
    assert "odd\\x1b[2J: \\x1b]0;title\\x07" in out
