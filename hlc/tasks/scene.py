"""Scene: start pose and box of a task's episodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pretrain.characters.box import Box
from pretrain.characters.character import Character


@dataclass(frozen=True)
class Scene:
    """By default episodes begin in a clip that stays upright, and a fall ends them."""

    lying: bool = False  # episodes begin lying on the ground, and no fall ends them
    # A free box, whose state is the task's goal, in the layout of `BOX_LAYOUT`.
    box: Box | None = None
    # A touch by any other body counts as a fall, until the goal is met.
    may_touch_box: tuple[str, ...] = ()

    def extend(self, character: Character) -> Character:
        """`character` with the scene's box beside it."""
        return replace(character, box=self.box)


UPRIGHT = Scene()
