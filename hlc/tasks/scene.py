"""Scene: what a task's episodes need beside an upright character."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scene:
    """By default an episode begins in a clip that stays upright, and ends in a fall."""

    lying: bool = False  # episodes begin lying on the ground, and no fall ends them


UPRIGHT = Scene()
