"""The files of a card: CARD.md and the pictures that it links."""

from __future__ import annotations

import json
import re

import pytest

from pretrain.evaluation.card import write_card
from pretrain.evaluation.learning_curves import POINTS, learning

LATENTS = {"walk": (1.0, 0.0, 0.0), "run": (0.0, 1.0, 0.0), "run_mirror": (0.0, 0.0, 1.0)}


def card(*clips: str) -> dict:
    others = {clip: {other: 0.5 for other in clips if other != clip} for clip in clips}
    return {
        "time_on_clip": {"per_clip": dict.fromkeys(clips, 0.9)},
        "coverage_per_clip": dict.fromkeys(clips, 1.0),
        "switch_success": {"matrix": others if len(clips) > 1 else {}},
        "caveats": [],
    }


def curves() -> list[dict[str, float]]:
    return [
        {
            "samples": 8e3 * i,
            "seconds": 2.0 * i,
            "episode/length": 30.0 + i,
            "assist": 0.7 / (1 + i),
        }
        for i in range(1, 300)
    ]


def test_every_picture_of_the_page_is_written(tmp_path):
    caveats = ["run is performed 12% of the time under its own z"]
    full = {**card("walk", "run"), "caveats": caveats, "learning": learning(curves())}
    page = write_card(tmp_path, "humanoid@1", "the table", full, LATENTS)
    text = page.read_text()
    assert "the table" in text
    assert f"- {caveats[0]}" in text
    pictures = re.findall(r"\]\((.+?\.png)\)", text)
    assert pictures == ["clips.png", "switches.png", "latents.png", "learning.png"]
    for name in pictures:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "card.json").read_text()) == full


def test_a_card_without_curves_or_with_a_single_clip_is_drawn_too(tmp_path):
    one = {"walk": LATENTS["walk"]}
    page = write_card(tmp_path, "humanoid@1", "", card("walk"), one)
    assert re.findall(r"\]\((.+?\.png)\)", page.read_text()) == ["clips.png", "latents.png"]
    assert "Caveats" not in page.read_text()
    few = {**card("walk"), "learning": {"samples": [1.0]}}
    page = write_card(tmp_path, "humanoid@1", "", few, one)
    assert "learning.png" not in page.read_text()


def test_learning_curves_share_one_length_and_average_the_log():
    drawn = learning(curves())
    assert {len(values) for values in drawn.values()} == {POINTS}
    assert drawn["samples"][-1] == 8e3 * 299  # where the run ended
    assert drawn["seconds"][-1] == 2 * 299
    assert drawn["episode/length"][0] == pytest.approx(32)  # the mean of the first three rows
    assert learning(curves()[:2])["seconds"] == [2.0, 4.0]
    assert learning([]) == {}
    lacking = [{**curves()[0], "assist": float("nan")}, *curves()[1:]]
    assert set(drawn) - set(learning(lacking)) == {"assist"}
