"""The card as files: what CARD.md shows is there, whatever the library."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from pretrain.evaluate import caveats
from pretrain.evaluation.card import POINTS, learning, write_card
from skills_store.store import BUNDLED, Store


@pytest.fixture(scope="module")
def manifest():
    return Store(BUNDLED).resolve("humanoid@1").manifest


def curves() -> list[dict[str, float]]:
    rows = range(1, 300)
    return [{"samples": 8e3 * i, "seconds": 2.0 * i, "episode/length": 30.0 + i, "assist": 0.7 / (1 + i)} for i in rows]


def test_every_picture_on_the_page_is_there(manifest, tmp_path):
    card = {**manifest.card, "caveats": ["run is not performed under random skills"], "learning": learning(curves())}
    page = write_card(tmp_path, "humanoid@1", "the table", card, manifest.latent.clips)
    text = page.read_text()
    assert "the table" in text
    assert "- run is not performed" in text
    pictures = re.findall(r"\]\((.+?\.png)\)", text)
    assert set(pictures) == {"coverage.png", "latents.png", "falls.png", "learning.png"}
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
    assert json.loads((tmp_path / "card.json").read_text()) == card


def test_curves_are_as_long_as_each_other_and_mean_what_the_log_says():
    drawn = learning(curves())
    assert {len(values) for values in drawn.values()} == {POINTS}
    assert (drawn["samples"][-1], drawn["seconds"][-1]) == (8e3 * 299, 2 * 299)  # where the run ended
    assert drawn["episode/length"][0] == pytest.approx(32)  # the mean of the first three rows
    assert learning(curves()[:2])["seconds"] == [2.0, 4.0]
    assert learning([]) == {}
    lacking = [{**curves()[0], "assist": float("nan")}, *curves()[1:]]
    assert set(drawn) - set(learning(lacking)) == {"assist"}


def test_a_card_without_curves_or_with_a_single_clip_is_drawn_too(manifest, tmp_path):
    one = {"walk": manifest.latent.clips["walk"]}
    bare = {name: value for name, value in manifest.card.items() if name != "learning"} | {"caveats": []}
    page = write_card(tmp_path, "humanoid@1", "", bare, one)
    assert "learning.png" not in page.read_text()
    few = {**bare, "learning": {"samples": [1.0]}}
    assert "learning.png" not in write_card(tmp_path, "humanoid@1", "", few, one).read_text()
    assert "thin" not in page.read_text()


def test_what_is_thin_is_said(manifest, material):
    clips = material.dataset
    assert any(line.startswith("run is not performed") for line in said(manifest.card, clips, run=0.0))
    assert not any("run" in line for line in said(manifest.card, clips, run=0.9))
    assert said(manifest.card, replace(clips, clips=clips.clips[:1]), run=0.9)[0].startswith("1 clip(s), 1.3 s")
    assert "run is covered to 0.40 only" in said(manifest.card, clips, run=0.4)
    alike = {**manifest.card, "diversity": {**manifest.card["diversity"], "over_repeat": 1.02}}
    assert any("1.02 times as far apart" in line for line in said(alike, clips, run=0.9))
    assert not any("times as far apart" in line for line in said(manifest.card, clips, run=0.9))
    few = {**manifest.card, "detail": {**manifest.card["detail"], "survival": {"n": 32}}}
    assert any(line.startswith("32 episodes") for line in said(few, clips, run=0.9))


def said(card: dict, clips, *, run: float) -> list[str]:
    return caveats({**card, "coverage_per_clip": {"walk": 1.0, "run": run}}, clips)
