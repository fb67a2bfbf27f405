"""Loads the clips of files, folders and recipes. For training."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from pretrain.characters.character import load_character
from pretrain.motion.clip import MIRROR, ClipError, MotionClip
from pretrain.motion.dataset import load_dataset
from pretrain.motion.importers import SUFFIXES, is_recognized, name_of, read_clip
from pretrain.motion.importers.amc import read_bytes
from pretrain.motion.recipe import RECIPES

RECIPE_SUFFIXES = (".yaml", ".yml")
MIXED = (".txt", ".json", ".csv", ".npz", ".npy", ".pkl")  # suffixes of many kinds of files


def is_recipe(path: str) -> bool:
    """Whether `path` is a YAML file or the name of a recipe that comes with the project. A file or
    folder of that name is none."""
    if Path(path).suffix in RECIPE_SUFFIXES:
        return True
    is_name = re.fullmatch(r"\w+", path) is not None
    return is_name and not Path(path).exists() and (RECIPES / f"{path}.yaml").exists()


def find_files(path: str) -> list[Path]:
    """The file `path`, or the clips below the folder `path`; FileNotFoundError for a recipe, and
    where there is nothing.
    """
    kinds = ", ".join(dict.fromkeys(SUFFIXES))
    if is_recipe(path):
        raise FileNotFoundError(f"{path}: a recipe, expected a file or a folder with {kinds}")
    place = Path(path)
    if place.is_file():
        return [place]
    files = sorted(file for file in place.rglob("*") if _is_clip(file))
    if not files:
        recipes = ", ".join(sorted(recipe.stem for recipe in RECIPES.glob("*.yaml")))
        raise FileNotFoundError(f"{path}: no file, no folder with {kinds}, no recipe of: {recipes}")
    return files


def _is_clip(file: Path) -> bool:
    """Whether a file of a folder is a clip. Folders also have others: a licence, a body's shape."""
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES or file.is_dir():
        return False
    try:
        return suffix not in MIXED or is_recognized(file.read_bytes())
    except OSError:
        return True  # reading it reports what is wrong with it


def load_file(file: Path, character: str) -> MotionClip:
    """The clip of a file; ClipError with the reason where there is none."""
    return read_clip(read_bytes(file), file.name, load_character(character).skeleton)


def states_licence(file: Path, character: str) -> bool:
    """Whether a file has a licence; only .npz files that `convert` wrote may."""
    if file.suffix.lower() != ".npz":
        return False
    try:
        return bool(load_file(file, character).licence)
    except ClipError:
        return False


def load_clips(path: str, character: str) -> list[MotionClip]:
    """All clips of a recipe, a folder or a file; a recipe's without their mirror images."""
    if is_recipe(path):
        dataset = load_dataset(path, load_character(character).skeleton)
        return [*dataset.originals, *dataset.left_out]
    return [load_file(file, character) for file in find_files(path)]


def place_converted(files: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """The .npz in `folder` for each file. ClipError where two files would share one."""
    sources: dict[Path, Path] = {}
    for file in files:
        target = folder / f"{file.stem}.npz"
        if target in sources:
            both = f"{sources[target]} and {file}"
            raise ClipError(f"{both} would both be {target}: rename one, or convert them apart")
        sources[target] = file
    return {file: target for target, file in sources.items()}


def name_clips(files: Sequence[Path]) -> list[str | None]:
    """The name that a recipe must give each file's clip; None where the file's own name is unique,
    also among mirror images."""
    own = [name_of(file.name) for file in files]
    taken: set[str] = set()
    names: list[str | None] = []
    for name in own:
        plain = re.sub(r"\W", "_", name)
        others = (f"{plain}_{number}" for number in count(2))
        free = _is_free(name, taken)
        given = None if free else next(x for x in others if _is_free(x, taken.union(own)))
        taken.add(given or name)
        names.append(given)
    return names


def list_motions(files: Sequence[Path], folder: Path) -> list[dict[str, str]]:
    """The motions of a recipe of `files`, placed in `folder`: a path each, and a name where the
    file's own is not unique."""
    motions = []
    for file, name in zip(files, name_clips(files), strict=True):
        named = {"name": name} if name else {}
        motions.append({**named, "file": os.path.relpath(file, folder)})
    return motions


def _is_free(name: str, taken: set[str]) -> bool:
    return taken.isdisjoint((name, f"{name}{MIRROR}", name.removesuffix(MIRROR)))


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically; OSError names `path`."""
    part = path.with_suffix(f".{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        part.unlink(missing_ok=True)
