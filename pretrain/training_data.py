"""The data of a training run: a character, its clips, and their style windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrain.ase.reference_windows import ReferenceWindows, make_reference_windows
from pretrain.characters.character import Character, load_character
from pretrain.motion.clip import CONTROL_RATE, is_control_step
from pretrain.motion.dataset import Dataset, load_dataset
from pretrain.motion.library import MotionLibrary, pack
from pretrain.publishing.manifest_character import from_manifest
from skills_store.manifest import Manifest

JERK_FRAMES = 4  # frames of a third derivative
STILL = 1e-6  # rad


@dataclass(frozen=True)
class TrainingData:
    character: Character
    dataset: Dataset
    library: MotionLibrary
    demos: ReferenceWindows


def load_training_data(character: str, motions: str, window: int) -> TrainingData:
    """Clips converted and packed; errors name the recipe, the file and the frame."""
    return _load(load_character(character), motions, window)


def load_published_data(manifest: Manifest, window: int) -> TrainingData:
    """The data that a published library was trained on: the character in its manifest, and the
    recipe that its lineage names. ValueError where the clips have changed since."""
    if "motions" not in manifest.lineage.config:
        raise ValueError(
            f"{manifest.name}'s lineage names no 'motions': there is nothing to measure against"
        )
    data = _load(from_manifest(manifest.character), manifest.lineage.config["motions"], window)
    present = {clip.name: clip.digest for clip in data.dataset.clips}
    recorded = {clip.name: clip.digest for clip in manifest.lineage.clips} or present
    names = present.keys() | recorded.keys()
    changed = sorted(name for name in names if present.get(name) != recorded.get(name))
    if changed:
        motions = manifest.lineage.config["motions"]
        excluded = _describe_excluded(data.dataset)
        raise ValueError(
            f"{manifest.name} learned from other clips than recipe {motions!r} has now: "
            f"{', '.join(changed)} changed. Its own: {', '.join(recorded)}{excluded}"
        )
    return data


def load_other_data(manifest: Manifest, motions: str, window: int) -> TrainingData:
    """The clips of recipe `motions`, on the character of a published library."""
    return _load(from_manifest(manifest.character), motions, window)


def _describe_excluded(dataset: Dataset) -> str:
    names = [clip.name for clip in dataset.left_out]
    return f". This version excludes infeasible clips: {', '.join(names)}" if names else ""


def _load(body: Character, motions: str, window: int) -> TrainingData:
    dataset = load_dataset(motions, body.skeleton)
    if not is_control_step(body.control_dt):
        expected = f"expected {1 / CONTROL_RATE:g}, for clips are read at {CONTROL_RATE:g} Hz"
        raise ValueError(
            f"character {body.name!r}: control_dt is {body.control_dt:g} s, {expected}"
        )
    library = pack(dataset.clips, dataset.weights)
    for name, length in zip(library.names, library.lengths.tolist(), strict=True):
        if length < max(window, JERK_FRAMES):
            needs = f"a style window needs {window}, and its jerk {JERK_FRAMES}"
            raise ValueError(f"recipe {dataset.name!r}: {name} has {length} frames; {needs}")
    if all(np.ptp(clip.joint_pos, 0).max() < STILL for clip in dataset.clips):
        raise ValueError(
            f"recipe {dataset.name!r}: no joint moves in any clip, so there is nothing to learn"
        )
    return TrainingData(
        body, dataset, library, make_reference_windows(library, body.skeleton, window)
    )
