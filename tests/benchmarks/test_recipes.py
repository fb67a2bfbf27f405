"""Recipes drawn from a folder: only good clips, each take once, deterministic per seed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks import recipes
from benchmarks.finished_run import train_and_measure
from benchmarks.learning import Row
from benchmarks.recipes import (
    COLUMNS,
    draw_recipe,
    find_good_takes,
    main,
    parse_plan,
    write_recipes,
    write_table,
)
from pretrain.motion.dataset import EVERYDAY
from pretrain.motion.recipe import load_recipe


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three good clips, one of them twice, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("takes")
    good = find_good_takes(EVERYDAY)[:3]
    for file in good:
        shutil.copy(file, folder)
    (folder / "copies").mkdir()
    shutil.copy(good[0], folder / "copies")
    (folder / "broken.npz").write_bytes(b"no clip")
    return folder


def test_good_takes_are_found_once(takes: Path) -> None:
    found = [file.stem for file in find_good_takes(takes)]
    assert len(found) == 3
    assert len(set(found)) == 3
    assert "broken" not in found


def test_a_draw_has_different_takes_and_depends_on_the_seed() -> None:
    files = [Path(f"{i}.npz") for i in range(50)]
    draws = [draw_recipe(files, 5, np.random.default_rng([0, number])) for number in range(10)]
    assert all(len(set(draw)) == 5 for draw in draws)
    assert len({tuple(draw) for draw in draws}) == 10
    assert draw_recipe(files, 5, np.random.default_rng([0, 3])) == draws[3]


def test_written_recipes_are_loaded_and_do_not_depend_on_their_count(
    takes: Path, tmp_path: Path
) -> None:
    texts = []
    for count in ("2", "3"):
        plan = parse_plan([str(takes), f"count={count}", "clips=2", f"out={tmp_path / count}"])
        write_recipes(plan)
        recipe, _ = load_recipe(str(plan.recipe(1)))
        assert len(recipe.motions) == 2
        assert recipe.mirror
        texts.append(plan.recipe(1).read_text())
    assert texts[0] == texts[1]


def row(survival: float, switch_success: float | None) -> Row:
    return {**dict.fromkeys(COLUMNS, 0.5), "survival": survival, "switch_success": switch_success}


def test_the_table_ends_with_the_median_of_what_was_measured() -> None:
    rows = {0: row(0.9, None), 2: row(0.95, 0.2), 3: row(1.0, 0.4)}
    drawn = {0: [Path("walk.bvh")], 2: [Path("run.bvh"), Path("jog.npz")], 3: [Path("turn.npz")]}
    lines = write_table(rows, drawn).splitlines()
    assert lines[2] == "| 0: walk | 0.9 | 0.5 | 0.5 | 0.5 | 0.5 | - | 0.5 |"
    assert lines[3].startswith("| 2: run, jog |")
    assert lines[-1] == "| median of 3 | 0.95 | 0.5 | 0.5 | 0.5 | 0.5 | 0.3 | 0.5 |"


def test_failed_training_is_left_out_and_sets_the_exit_status(
    takes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        recipes,
        "train_and_measure",
        lambda overrides, measurement, title: [] if title == "recipe 0" else [row(0.9, 0.5)],
    )
    assert main([str(takes), "count=2", "clips=2", f"out={tmp_path}"]) == 1
    table = (tmp_path / "recipes.md").read_text()
    assert table == capsys.readouterr().out
    assert table.splitlines()[-1].startswith("| median of 1 | 0.9 ")


@pytest.mark.slow
def test_a_drawn_recipe_is_trained_and_measured(takes: Path, tmp_path: Path) -> None:
    plan = parse_plan(
        [str(takes), "count=1", "clips=2", "preset=toy", "samples=2048", f"out={tmp_path}"]
    )
    write_recipes(plan)
    rows = train_and_measure(plan.overrides(0), recipes.whole_card(32), "recipe 0")
    assert [row["samples"] for row in rows] == [2048]
    assert 0 < rows[0]["survival"] <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name one folder of clips, as takes/; got none"),
        (["no/such/folder"], "name one folder of clips, as takes/; got no/such/folder"),
        (["TAKES", "clips=9"], "clips=9: "),
        (["TAKES", "only=3", "count=3"], "only=3 is not a whole number from 0 to 2"),
        (["TAKES", "recipes=3"], "unknown key recipes; there are: "),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: list[str], message: str, takes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.replace("TAKES", str(takes)) for argument in arguments]) == 2
    assert capsys.readouterr().err.startswith(message)
