"""A diff names every leaf in which two versions differ, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_store.__main__ import main
from skills_store.catalog.diff import Change, compare, list_changes
from skills_store.catalog.flatten import flatten, flatten_numbers
from skills_store.manifest import Action, Clip, Lineage
from skills_store.store import Store, Version
from tests import tiny

DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def clip(name: str, licence: str = "CC0-1.0") -> Clip:
    return Clip(name=name, digest=DIGEST, source="here", licence=licence, weight=1.0)


def publish(store: Store, seed: int = 0, **changed: Any) -> Version:
    lineage = Lineage(
        config={"ppo": {"lr": 3e-4, "epochs": 2}}, seed=0, clips=(clip("walk"), clip("run"))
    )
    return store.publish(
        tiny.skills_manifest().model_copy(update={"lineage": lineage} | changed),
        tiny.skills_files(seed),
    )


def test_a_version_does_not_differ_from_itself(store: Store) -> None:
    assert compare(publish(store), publish(store)) == {}


def test_diff_lists_changed_card_config_clips_and_files(store: Store) -> None:
    a = publish(store, card={"survival": 0.5, "diversity": {"ratio": 1.0}})
    lineage = Lineage(
        config={"ppo": {"lr": 1e-4}, "new": True},
        seed=1,
        clips=(clip("run", "CC-BY-4.0"), clip("jump")),
    )
    b = publish(
        store,
        seed=1,
        card={"survival": 0.75, "diversity": {"ratio": 1.0}, "fidelity": 2.0},
        lineage=lineage,
    )
    found = compare(a, b)
    assert found["card"] == (
        Change("fidelity", "added", after=2.0),
        Change("survival", "changed", 0.5, 0.75, 0.25),
    )
    assert found["config"] == (
        Change("new", "added", after=True),
        Change("ppo.epochs", "removed", before=2),
        Change("ppo.lr", "changed", 3e-4, 1e-4, 1e-4 - 3e-4),
    )
    assert [(c.key, c.how) for c in found["clips"]] == [
        ("jump", "added"),
        ("run", "changed"),
        ("walk", "removed"),
    ]
    assert [(c.key, c.before["size"] + c.delta) for c in found["files"]] == [
        (file, len(data)) for file, data in sorted(tiny.skills_files(1).items())
    ]
    assert set(found) == {"card", "config", "clips", "files", "lineage"}


def test_diff_lists_changed_graphs_action_and_character(store: Store) -> None:
    n = len(tiny.JOINTS)
    a = publish(store, action=Action(offset=(0.0,) * n, scale=(1.0,) * n))
    body = tiny.character().model_copy(
        update={"kp": (120.0, *tiny.character().kp[1:]), "control_dt": 1 / 60}
    )
    graphs = {name: graph for name, graph in a.manifest.graphs.items() if name != "style"}
    files = {name: data for name, data in tiny.skills_files().items() if name != "style.onnx"}
    manifest = a.manifest.model_copy(
        update={
            "character": body,
            "action": Action(offset=(0.0,) * n, scale=(1.0, 1.5, *(1.0,) * (n - 2))),
            "graphs": graphs,
        }
    )
    found = compare(a, store.publish(manifest, files))
    assert [(c.key, c.delta) for c in found["action"]] == [("scale", 0.5)]
    assert [(c.key, c.delta) for c in found["character"]] == [
        ("control_dt", 1 / 60 - 1 / 30),
        ("kp", 20.0),
    ]
    assert {c.how for c in found["graphs"]} == {"removed"}
    assert "style.inputs.window.shape" in {c.key for c in found["graphs"]}
    assert [(c.key, c.how) for c in found["files"]] == [("style.onnx", "removed")]


def test_diff_of_a_library_and_a_controller_lists_kind_and_parent(store: Store) -> None:
    a = publish(store)
    found = compare(a, tiny.publish_tiny_controller(store, a))
    assert {"kind", "name"} <= {c.key for c in found["version"]}
    assert "parent.digest" in {c.key for c in found["task"]}


@given(
    *[
        st.dictionaries(
            st.sampled_from("abcd"), st.one_of(st.none(), st.booleans(), st.integers(0, 2))
        )
    ]
    * 2
)
def test_applying_the_changes_to_before_gives_after(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    made = dict(before)
    for change in list_changes(before, after):
        assert change.before == before.get(change.key)
        if change.how == "removed":
            del made[change.key]
        else:
            made[change.key] = change.after
    assert made == after


def test_flatten_keeps_the_leaves_of_a_tree() -> None:
    tree = {
        "a": {"b": 1, "c": [1, 2]},
        "io": [{"name": "z", "width": 8}],
        "none": None,
        "empty": {},
    }
    assert flatten(tree) == {"a.b": 1, "a.c": [1, 2], "io.z.width": 8, "none": None}
    assert flatten_numbers({"a": {"b": 1, "on": True}, "c": "x", "d": 0.5}) == {"a.b": 1, "d": 0.5}


def test_diff_command(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    publish(store, card={"survival": 0.5})
    publish(store, card={"survival": 0.75})
    where = ["--store", str(store.root)]
    assert main([*where, "diff", "humanoid@1", "humanoid@latest"]) == 0
    out = capsys.readouterr().out
    assert "CARD      BEFORE  AFTER  DELTA\nsurvival  0.5     0.75   +0.25" in out
    assert main([*where, "diff", "humanoid@1", "humanoid@2", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["a"]["ref"], reported["b"]["ref"]) == ("humanoid@1", "humanoid@2")
    assert reported["changes"] == {
        "card": [{"key": "survival", "how": "changed", "before": 0.5, "after": 0.75, "delta": 0.25}]
    }
    assert main([*where, "diff", "humanoid@1", "humanoid@1"]) == 0
    assert "the same manifest" in capsys.readouterr().out
    assert main([*where, "diff", "humanoid@1", "humanoid@9"]) == 2
