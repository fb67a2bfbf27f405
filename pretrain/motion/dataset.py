"""Dataset: the clips of a recipe, read, edited and mirrored, with how often each is drawn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pretrain.characters.skeleton import Skeleton
from pretrain.motion import fetch
from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.editing.edit import Edit
from pretrain.motion.feasibility import find_doubts, find_infeasible
from pretrain.motion.importers import SUFFIXES, read_clip
from pretrain.motion.importers.amc import read_bytes
from pretrain.motion.licences import describe_unknown, is_non_commercial, join_licences
from pretrain.motion.recipe import Motion, load_recipe
from skills_store import places

PYBULLET = "pybullet:"  # prefix of a file inside the fetched default clips
FEWEST = 2  # frames of a clip
EVERYDAY = Path(__file__).parent / "everyday"
PACKAGE = "everyday:"  # prefix of a clip that comes with the project


@dataclass(frozen=True)
class Dataset:
    """Converted clips with their sampling weights; a mirrored clip shares its original's weight.

    A clip that the body cannot perform is left out: features are scaled by their std over the
    clips, in which one clip at 20 m/s would hide all other differences in speed."""

    name: str
    character: str
    clips: tuple[MotionClip, ...]
    weights: tuple[float, ...]
    left_out: tuple[MotionClip, ...] = ()

    @property
    def originals(self) -> tuple[MotionClip, ...]:
        """The clips without mirror images."""
        return tuple(clip for clip in self.clips if not clip.mirror_of)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Doubts about the clips, one line each, and the clips that are left out."""
        lines: list[str] = []
        for clip in self.originals:
            lines += find_doubts(clip)
            lines += _licence_doubts(clip)
        lines += describe_unknown({clip.name: clip.licence for clip in self.originals})
        for clip in self.left_out:
            lines += clip.warnings
        for clip in self.left_out:
            lines += (f"{line}: left out" for line in find_infeasible(clip))
        return tuple(lines)

    @property
    def digest(self) -> str:
        """Digest of the training data: clips, their files and smoothing, and weights."""
        rows = [
            (clip.name, clip.digest, weight)
            for clip, weight in zip(self.clips, self.weights, strict=True)
        ]
        return f"sha256:{hashlib.sha256(json.dumps(rows).encode()).hexdigest()}"


def _licence_doubts(clip: MotionClip) -> tuple[str, ...]:
    if not is_non_commercial(clip.licence):
        return ()
    return (f"{clip.name}: licence {clip.licence} keeps what is trained on it out of products",)


def load_dataset(reference: str, skeleton: Skeleton) -> Dataset:
    """Every clip of a recipe that can be performed, converted at the control rate, with mirror
    images if `recipe.mirror`. ClipError for a recipe of another character."""
    recipe, folder = load_recipe(reference)
    if recipe.character != skeleton.name:
        other = f"is for {recipe.character!r}, not for {skeleton.name!r}"
        raise ClipError(f"recipe {recipe.name!r} {other}")
    clips = []
    weights = []
    left_out = []
    declared = {motion.file: motion for motion in reversed(recipe.motions)}
    for motion in recipe.motions:
        clip = _read(motion, declared, folder, skeleton)
        if find_infeasible(clip):
            left_out.append(clip)
            continue
        variants = [clip, clip.mirrored()] if recipe.mirror else [clip]
        clips += variants
        weights += [motion.weight / len(variants)] * len(variants)
    if not clips:
        why = "; ".join(line for clip in left_out for line in find_infeasible(clip))
        raise ClipError(f"recipe {recipe.name!r}: none of its clips can be performed: {why}")
    names = [clip.name for clip in clips]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ClipError(
            f"recipe {recipe.name!r}: clip names must differ; more than one "
            f"{', '.join(sorted(twice))}"
        )
    return Dataset(recipe.name, recipe.character, tuple(clips), tuple(weights), tuple(left_out))


def _read(
    motion: Motion, declared: Mapping[str, Motion], folder: Path, skeleton: Skeleton
) -> MotionClip:
    """The clip of a motion, edited, with the resulting source, licence and digest. Files that
    edits read are read as `declared` by the recipe's first motion of each file, if there is one."""
    clip = _read_file(motion, folder, skeleton)
    if motion.edits:
        clip = _edited(clip, motion, declared, folder, skeleton)
    return replace(clip, name=motion.name or clip.name)


def _read_file(motion: Motion, folder: Path, skeleton: Skeleton) -> MotionClip:
    path = _locate(motion.file, folder)
    if not path.is_file():
        existing = sorted(p.name for p in path.parent.glob("*") if p.suffix in SUFFIXES)
        names = ", ".join(existing) or "no clips"
        raise ClipError(f"{path}: no such clip; in that folder: {names}")
    data = read_bytes(path, folder / motion.asf if motion.asf else None)
    clip = read_clip(data, path.name, skeleton, motion.low_pass, motion.skeleton)
    if motion.file.startswith(PYBULLET):
        clip = replace(clip, source=fetch.SOURCE, licence=fetch.LICENCE)
    source = motion.source or clip.source
    stated = "licence" in motion.model_fields_set
    licence = motion.licence if stated else clip.licence or motion.licence
    if motion.low_pass is not None:
        smoothed = (
            f"low-passed at {motion.low_pass:g} Hz from sha256:{hashlib.sha256(data).hexdigest()}"
        )
        source = f"{source}, {smoothed}" if source else smoothed
    return replace(clip, source=source, licence=licence)


def _locate(file: str, folder: Path) -> Path:
    """Path of a recipe's file, which may be bundled or fetched."""
    if file.startswith(PYBULLET):
        return fetch.fetched(places.clips()) / file.removeprefix(PYBULLET)
    if file.startswith(PACKAGE):
        return EVERYDAY / file.removeprefix(PACKAGE)
    return folder / file


def _check_frames(clip: MotionClip, edits: Sequence[Edit], fewest: int) -> None:
    """ClipError where `edits` leave fewer frames than `fewest`."""
    if len(clip) < fewest:
        names = "; ".join(map(str, edits))
        raise ClipError(f"{clip.name}: {names}: leaves 1 frame, expected {fewest} frames or more")


def _edited(
    clip: MotionClip,
    motion: Motion,
    declared: Mapping[str, Motion],
    folder: Path,
    skeleton: Skeleton,
) -> MotionClip:
    """`clip` after a motion's edits; source and digest include the edits and the files they
    read."""
    sources: list[MotionClip] = []

    def read(file: str) -> MotionClip:
        sources.append(_read_file(declared.get(file) or Motion(file=file), folder, skeleton))
        return sources[-1]

    edited = clip
    for done, edit in enumerate(motion.edits):
        _check_frames(edited, motion.edits[:done], edit.fewest)
        edited = edit.apply(edited, read)
    edited = edited.resampled() if len(edited) > 1 else edited
    _check_frames(edited, motion.edits, FEWEST)
    names = "; ".join(map(str, motion.edits))
    edits = "; ".join(edit.identity for edit in motion.edits)
    identity = " ".join([clip.digest, edits, *(source.digest for source in sources)])
    warnings = [*edited.warnings, *(line for source in sources for line in source.warnings)]
    return replace(
        edited,
        source=f"{clip.source}, edited: {names}" if clip.source else f"edited: {names}",
        licence=join_licences([clip.licence, *(source.licence for source in sources)]),
        digest=f"sha256:{hashlib.sha256(identity.encode()).hexdigest()}",
        warnings=tuple(dict.fromkeys(warnings)),  # a file that is read twice warns once
    )
