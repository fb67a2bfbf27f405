"""Datasets of one clip, of a stand alone and with an infeasible clip, with and without
the training aids."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pretrain.train import main
from tests.pipeline.small import learned

TINY = (
    "num_envs=16",
    "num_disc_obs_steps=3",
    "samples=256",
    "ppo.horizon=8",
    "disc.disc_buffer_size=2000",
    "publish=false",
    "threads=1",
    *(f"{part}=[16]" for part in ("ppo.hidden", "ppo.value_hidden", "disc.hidden", "enc.hidden")),
)
WALK = "{file: 'everyday:cmu_07_01.npz'}"
STAND = (
    "{file: 'everyday:cmu_02_10.npz', edits: [hold: {at: 1.8, seconds: 4}, sway: {size: 0.012}]}"
)
TOO_FAST = "{name: dart, file: 'everyday:cmu_35_17.npz', edits: [speed: {factor: 4}]}"
RECIPES = {
    "one clip": f"mirror: false\nmotions: [{WALK}]",
    "a clip and its mirror image": f"motions: [{WALK}]",
    "a stand alone": f"mirror: false\nmotions: [{STAND}]",
    "a clip beside an infeasible one": f"motions: [{WALK}, {TOO_FAST}]",
}


def train_on(motions: str, preset: str, folder: Path) -> int:
    """The exit status of a small training on a recipe of `motions`."""
    recipe = folder / "few.yaml"
    recipe.write_text(f"name: few\n{motions}\n", encoding="utf-8")
    warm = () if preset == "ase" else ("warm.encoder_steps=2", "warm.clone_steps=2")
    return main([f"preset={preset}", f"motions={recipe}", f"runs={folder / 'runs'}", *TINY, *warm])


@pytest.mark.parametrize("preset", ["mobility", "ase"])
@pytest.mark.parametrize("motions", RECIPES.values(), ids=RECIPES)
def test_few_clips_train_with_finite_measures(motions: str, preset: str, tmp_path: Path) -> None:
    assert train_on(motions, preset, tmp_path) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    rows = learned(folder)
    assert rows[-1]["samples"] == 256
    assert all(math.isfinite(x) for row in rows for x in row.values())


@pytest.mark.parametrize("preset", ["mobility", "ase"])
def test_an_infeasible_clip_alone_is_refused(
    preset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train_on(f"motions: [{TOO_FAST}]", preset, tmp_path) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "dart" in error
    assert "m/s" in error
    assert not (tmp_path / "runs").exists()
