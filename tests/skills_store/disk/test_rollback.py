"""Rollback: one logged move to the version that an alias had before, without the guard."""

from __future__ import annotations

import json
import multiprocessing
import random
from pathlib import Path

import pytest

from skills_store.__main__ import main
from skills_store.errors import (
    CorruptBlob,
    NoEarlierVersion,
    Regression,
    UnknownAlias,
    UnknownSkill,
)
from skills_store.store import Store, Version
from tests import tiny


def publish(store: Store, survival: float) -> Version:
    manifest = tiny.skills_manifest().model_copy(update={"card": {"survival": survival}})
    return store.publish(manifest, FILES)


FILES = tiny.skills_files()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Four versions, each better than the one before."""
    store = Store(tmp_path / "store")
    for survival in (0.6, 0.7, 0.8, 0.9):
        publish(store, survival)
    return store


def prod_number(store: Store) -> int:
    return store.resolve("humanoid@prod").number


def test_rollback_is_allowed_to_a_worse_version(store: Store) -> None:
    store.alias("humanoid", "prod", 1)
    store.alias("humanoid", "prod", 3)
    with pytest.raises(Regression):
        store.alias("humanoid", "prod", 1)
    assert store.rollback("humanoid", "prod", "falls on stairs").number == 1
    assert prod_number(store) == 1
    move = store.log("humanoid")[-1]
    assert (move.number, move.undoes, move.why) == (1, 2, "falls on stairs")  # type: ignore[union-attr]


def test_repeated_rollback_goes_further_back(store: Store) -> None:
    for number in (1, 2, 3):
        store.alias("humanoid", "prod", number)
    assert [store.rollback("humanoid", "prod").number for _ in range(2)] == [2, 1]
    with pytest.raises(NoEarlierVersion, match="humanoid@prod stays where it is"):
        store.rollback("humanoid", "prod")
    store.alias("humanoid", "prod", 4)
    assert store.rollback("humanoid", "prod").number == 1  # not to 3, which was rolled back
    assert prod_number(store) == 1


def test_setting_an_alias_to_its_current_version_is_no_move(store: Store) -> None:
    for number in (1, 2, 2):
        store.alias("humanoid", "prod", number)
    assert store.rollback("humanoid", "prod").number == 1


def test_rollback_history_is_per_alias(store: Store) -> None:
    store.alias("humanoid", "prod", 1)
    store.alias("humanoid", "canary", 2)
    store.alias("humanoid", "canary", 3)
    with pytest.raises(NoEarlierVersion):
        store.rollback("humanoid", "prod")
    assert store.rollback("humanoid", "canary").number == 2
    assert prod_number(store) == 1


def test_rollback_refuses_damaged_and_skips_deleted_versions(store: Store) -> None:
    for number in (1, 2, 3):
        store.alias("humanoid", "prod", number)
    gone = store.resolve("humanoid@2")
    blob = store.root / "blobs/sha256" / gone.digest.removeprefix("sha256:")
    whole = blob.read_bytes()
    blob.chmod(0o644)
    blob.write_bytes(b"rot")
    with pytest.raises(CorruptBlob, match="humanoid@2"):
        store.rollback("humanoid", "prod")
    blob.write_bytes(whole)
    store.delete("humanoid@2", "it limps")
    assert store.rollback("humanoid", "prod").number == 1
    move = store.log("humanoid")[-1]
    assert (move.number, move.undoes) == (1, 2)  # type: ignore[union-attr]
    with pytest.raises(NoEarlierVersion):  # a version rolled back from is not returned to
        store.rollback("humanoid", "prod")
    store.alias("humanoid", "prod", 4)
    assert store.rollback("humanoid", "prod").number == 1


def test_rollback_is_refused_if_earlier_versions_are_deleted(store: Store) -> None:
    for number in (2, 1, 2):  # back at 2 without a rollback
        store.alias("humanoid", "canary", number)
    store.delete("humanoid@1", "it limps")
    with pytest.raises(NoEarlierVersion):
        store.rollback("humanoid", "canary")
    assert len(store.log("humanoid")) == 4  # three moves and a deletion


def test_unknown_names_error_suggests_existing_ones(store: Store) -> None:
    store.alias("humanoid", "prod", 1)
    with pytest.raises(UnknownAlias, match="did you mean 'prod'"):
        store.rollback("humanoid", "prd")
    with pytest.raises(UnknownAlias):
        store.rollback("humanoid", "latest")
    with pytest.raises(UnknownSkill):
        store.rollback("nobody", "prod")


def test_rollback_skips_a_damaged_move(store: Store) -> None:
    for number in (1, 2, 3):
        store.alias("humanoid", "prod", number)
    file = store.root / "skills/humanoid/moves/prod/00000002.json"
    file.chmod(0o644)
    file.write_bytes(b"rot")
    assert store.rollback("humanoid", "prod").number == 1


def test_rollback_command(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--store", str(store.root)]
    for number in (1, 2):
        store.alias("humanoid", "prod", number)
    assert main([*where, "rollback", "humanoid", "prod", "--why", "stairs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == 1
    assert main([*where, "log", "humanoid"]) == 0
    assert "rollback: stairs" in capsys.readouterr().out
    assert main([*where, "log", "humanoid", "--json"]) == 0
    assert [event["event"] for event in json.loads(capsys.readouterr().out)] == [
        "move",
        "move",
        "rollback",
    ]
    assert main([*where, "rollback", "humanoid", "prod"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("alias", ["prod", "canary"])
def test_protected_alias_never_regresses_under_concurrent_moves(store: Store, alias: str) -> None:
    """The guard compares with the version that the alias has when it is moved."""
    if alias != "prod":
        store.alias("humanoid", alias, 1)
        store.protect("humanoid", alias)
    fork = multiprocessing.get_context("fork")
    workers = [
        fork.Process(target=_move_randomly, args=(store.root, alias, seed)) for seed in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    numbers = [event.number for event in store.log("humanoid")]
    assert len(numbers) >= 4
    assert numbers == sorted(numbers)


def _move_randomly(root: Path, alias: str, seed: int) -> None:
    store = Store(root)
    choice = random.Random(seed)
    for _ in range(15):
        try:
            store.alias("humanoid", alias, choice.randint(1, 4))
        except Regression:
            continue
