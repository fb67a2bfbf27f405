"""Fixtures of the pipeline tests: a recipe with a get-up clip, and graphs without an export."""

from __future__ import annotations

import pytest

from tests.pipeline import random_graphs


@pytest.fixture
def graphs_at_once(monkeypatch) -> None:
    """Publish libraries with graphs of random weights."""
    for name in ("export", "check_parity"):
        replacement = getattr(random_graphs, name)
        monkeypatch.setattr(f"pretrain.publishing.export.{name}", replacement)


@pytest.fixture
def rising(tmp_path) -> str:
    """A recipe of a walk and of getting up, neither mirrored."""
    recipe = tmp_path / "rising.yaml"
    files = "".join(
        f'  - {{file: "pybullet:humanoid3d_{name}.txt"}}\n' for name in ("walk", "getup_faceup")
    )
    recipe.write_text(f"name: rising\nmirror: false\nmotions:\n{files}")
    return str(recipe)
