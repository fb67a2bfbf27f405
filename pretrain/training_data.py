"""What a run learns from: a body, its clips, and the style windows in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrain.ase.style import Demos, demonstrations
from pretrain.characters.character import Character, load_character
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary, pack
from pretrain.motion.recipe import Dataset, load_dataset
from pretrain.publishing.manifest_character import from_manifest
from skills_store.manifest import Manifest

JERK = 4  # frames that a third derivative takes
STILL = 1e-6  # rad
SAME_RATE = 1e-6  # that two rates may differ by, relatively


@dataclass(frozen=True)
class Material:
    character: Character
    dataset: Dataset
    library: MotionLibrary
    demos: Demos


def load_material(character: str, motions: str, window: int) -> Material:
    """Clips converted and packed; errors name the recipe, the file and the frame."""
    return _material(load_character(character), motions, window)


def material_of(manifest: Manifest, window: int) -> Material:
    """What a published library learned from: the body that it carries, and the recipe that its lineage names."""
    if "motions" not in manifest.lineage.config:
        raise ValueError(f"{manifest.name}'s lineage names no 'motions': there is nothing to measure against")
    material = _material(from_manifest(manifest.character), manifest.lineage.config["motions"], window)
    now = {clip.name: clip.digest for clip in material.dataset.clips}
    then = {clip.name: clip.digest for clip in manifest.lineage.clips} or now
    if changed := sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name)):
        raise ValueError(
            f"{manifest.name} learned from other clips than recipe {manifest.lineage.config['motions']!r} has now: "
            f"{', '.join(changed)} changed. Its own: {', '.join(then)}{_left_out(material.dataset)}"
        )
    return material


def other_material(manifest: Manifest, motions: str, window: int) -> Material:
    """The clips of recipe `motions`, whatever the library learned from, on the body that it carries."""
    return _material(from_manifest(manifest.character), motions, window)


def _left_out(dataset: Dataset) -> str:
    names = [clip.name for clip in dataset.left_out]
    return f". This version leaves out what nobody can perform: {', '.join(names)}" if names else ""


def _material(body: Character, motions: str, window: int) -> Material:
    dataset = load_dataset(motions, body.skeleton)
    if dataset.character != body.name:
        raise ValueError(f"recipe {dataset.name!r} is for {dataset.character!r}, not for {body.name!r}")
    if abs(body.control_dt * CONTROL_RATE - 1) > SAME_RATE:
        expected = f"expected {1 / CONTROL_RATE:g}, for clips are read at {CONTROL_RATE:g} Hz"
        raise ValueError(f"character {body.name!r}: control_dt is {body.control_dt:g} s, {expected}")
    library = pack(dataset.clips, dataset.weights)
    for name, length in zip(library.names, library.lengths.tolist(), strict=True):
        if length < max(window, JERK):
            needs = f"a style window needs {window}, and its jerk {JERK}"
            raise ValueError(f"recipe {dataset.name!r}: {name} has {length} frames; {needs}")
    if all(np.ptp(clip.joint_pos(), 0).max() < STILL for clip in dataset.clips):
        raise ValueError(f"recipe {dataset.name!r}: no joint moves in any clip, so that there is nothing to learn")
    return Material(body, dataset, library, demonstrations(library, body.skeleton, window))


def control_steps(seconds: float) -> int:
    """Seconds as a number of control steps."""
    return round(seconds * CONTROL_RATE)
