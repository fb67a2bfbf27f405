"""References and aliases: how they resolve, and errors that list what exists."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from skills_store.errors import (
    InvalidName,
    InvalidReference,
    UnknownAlias,
    UnknownFile,
    UnknownSkill,
    UnknownVersion,
    format_ranges,
)
from skills_store.store import Store
from tests import tiny


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    tiny.publish_tiny(store, name="dancer")
    store.alias("humanoid", "prod", 2)
    return store


@pytest.mark.parametrize(
    ("ref", "number"),
    [("humanoid", 3), ("humanoid@latest", 3), ("humanoid@1", 1), ("humanoid@prod", 2)],
)
def test_every_form_of_reference_resolves(store: Store, ref: str, number: int) -> None:
    version = store.resolve(ref)
    assert version.number == number
    assert store.resolve(version.pinned) == version
    assert store.resolve(version.ref) == version


MALFORMED = """
    @1 humanoid@ humanoid@0 humanoid@007 humanoid@-1 humanoid@sha256:abc humanoid@1@2 ../humanoid
    humanoid/v    humanoid@../x Humanoid humanoid@999999999
"""


@pytest.mark.parametrize("ref", ["", "humanoid\n", "humanoid@prod\n", *MALFORMED.split()])
def test_malformed_reference_is_refused(store: Store, ref: str) -> None:
    with pytest.raises(InvalidReference, match="write name"):
        store.resolve(ref)


def test_unknown_things_list_what_exists(store: Store) -> None:
    with pytest.raises(
        UnknownSkill, match=r"did you mean 'humanoid'\? there are: dancer, humanoid"
    ) as skill:
        store.resolve("humanid")
    assert (skill.value.code, skill.value.near) == ("unknown_skill", ("humanoid",))
    with pytest.raises(UnknownVersion, match=r"no version '9' in humanoid; there are: 1-3, prod=2"):
        store.resolve("humanoid@9")
    with pytest.raises(UnknownVersion, match="there are: 1-3"):
        store.resolve("humanoid@sha256:" + "0" * 64)
    with pytest.raises(UnknownAlias, match=r"did you mean 'prod'\? there are: latest, prod"):
        store.resolve("humanoid@prd")
    with pytest.raises(UnknownFile, match=r"policy\.onnx"):
        store.read(store.resolve("humanoid"), "polizy.onnx")
    assert str(pickle.loads(pickle.dumps(skill.value))) == str(skill.value)


def test_empty_store_reports_no_skills(tmp_path: Path) -> None:
    with pytest.raises(UnknownSkill, match="there are no skills"):
        Store(tmp_path).resolve("humanoid")


def test_format_ranges_merges_consecutive_numbers() -> None:
    assert format_ranges([]) == ()
    assert format_ranges([3, 1, 2, 5, 8, 9]) == ("1-3", "5", "8-9")


def test_alias_history_survives_every_move(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seed in range(2):
        tiny.publish_tiny(store, seed=seed)
    store.alias("humanoid", "prod", 1, why="first")
    store.alias("humanoid", "prod", 2)
    store.alias("humanoid", "canary", 2)
    store.alias("humanoid", "prod", 1, why="rollback")
    moves = [(m.alias, m.rev, m.previous, m.number, m.why) for m in store.log("humanoid")]
    assert moves == [
        ("prod", 1, None, 1, "first"),
        ("prod", 2, 1, 2, ""),
        ("canary", 1, None, 2, ""),
        ("prod", 3, 2, 1, "rollback"),
    ]
    assert store.aliases("humanoid") == {"canary": 2, "prod": 1}
    assert store.resolve("humanoid@latest").number == 2


@pytest.mark.parametrize("alias", ["latest", "7", "../x", "sha256:00", "", "Prod"])
def test_invalid_alias_name_is_refused(store: Store, alias: str) -> None:
    with pytest.raises(InvalidName):
        store.alias("humanoid", alias, 1)


def test_alias_to_an_unknown_version_or_skill_is_refused(store: Store) -> None:
    with pytest.raises(UnknownVersion):
        store.alias("humanoid", "canary", 9)
    with pytest.raises(UnknownSkill):
        store.alias("nobody", "canary", 1)
    assert store.aliases("humanoid") == {"prod": 2}
    assert not (store.root / "skills/nobody").exists()
