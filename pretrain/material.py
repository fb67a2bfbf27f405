"""What a run learns from: a body, its clips, and the style windows in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pretrain.ase.style import Demos, demonstrations
from pretrain.characters.character import Character, load_character
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary, pack
from pretrain.motion.recipe import Dataset, load_dataset


@dataclass(frozen=True)
class Material:
    character: Character
    dataset: Dataset
    library: MotionLibrary
    demos: Demos


def load_material(character: str, motions: str, window: int) -> Material:
    """Clips converted and packed; errors name the recipe, the file and the frame."""
    body = load_character(character)
    dataset = load_dataset(motions, body.skeleton)
    if dataset.character != body.name:
        raise ValueError(f"recipe {dataset.name!r} is for {dataset.character!r}, not for {body.name!r}")
    library = pack(dataset.clips, dataset.weights)
    return Material(body, dataset, library, demonstrations(library, body.skeleton, window))


def material_of(lineage: Mapping[str, Any], window: int) -> Material:
    """What a published library learned from, by the configuration in its lineage."""
    if missing := {"character", "motions"} - set(lineage):
        raise ValueError(f"a lineage without {' and '.join(sorted(missing))} does not say what to measure against")
    return load_material(lineage["character"], lineage["motions"], window)


def control_steps(seconds: float) -> int:
    """Seconds as a number of control steps."""
    return round(seconds * CONTROL_RATE)
