"""Cards of libraries of few clips, with graphs of random weights."""

from __future__ import annotations

import json

import pytest

from pretrain.train import main
from skills_store.store import Store
from tests.pipeline.small import PHASE_LOCKED, SMALL

THIN = "too little for skills that differ"

pytestmark = pytest.mark.usefixtures("graphs_at_once")


def test_getup_is_trained_with_a_getup_clip_and_is_on_the_card(rising, tmp_path, capsys):
    where = (f"runs={tmp_path}/runs", f"store={tmp_path}/store")
    lying = ("recovery.fall_init_prob=0.5", "eval.episodes=16")
    assert main(["preset=toy", f"motions={rising}", *PHASE_LOCKED, *lying, *where]) == 0, (
        capsys.readouterr().err
    )
    row = json.loads(next((tmp_path / "runs").glob("*/metrics.jsonl")).read_text().splitlines()[-1])
    assert 0 < row["reward/getup"] < 1
    assert 0 < row["policy/pose_error"] < 1
    assert 0 < row["down"] < 1
    card = Store(tmp_path / "store").resolve("toy").manifest.card
    # a character that falls at once still has three seconds
    assert card["survival"] * card["detail"]["episode_steps"] >= 90
    assert set(card["survival_per_clip"]) == {"walk", "getup_faceup"}
    assert any(THIN in line for line in card["caveats"])
    assert any(line.startswith("16 episodes, fewer than ") for line in card["caveats"])


def test_single_clip_library_trains_and_card_has_a_caveat(tmp_path, capsys):
    recipe = tmp_path / "one.yaml"
    where = (f"runs={tmp_path}/runs", f"store={tmp_path}/store")
    recipe.write_text(
        'name: one\nmirror: false\nmotions:\n  - {file: "pybullet:humanoid3d_walk.txt"}\n'
    )
    little = ("samples=512", "eval.episodes=8", "threads=1", *SMALL)
    assert main(["preset=toy", f"motions={recipe}", *little, *where]) == 0, capsys.readouterr().err
    manifest = Store(tmp_path / "store").resolve("toy").manifest
    assert [clip.name for clip in manifest.lineage.clips] == list(manifest.latent.clips) == ["walk"]
    (caveat,) = (line for line in manifest.card["caveats"] if THIN in line)
    assert caveat.startswith("1 clip(s), 1.3 s")
    assert set(manifest.card["time_on_clip"]["per_clip"]) == {"walk"}
    assert manifest.card["switch_success"] == {
        "mean": None,
        "matrix": {},
    }  # there is nothing to switch to
