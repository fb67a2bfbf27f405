"""Clips behind what a user names: files, folders, recipes. For the lab."""

from __future__ import annotations

from pathlib import Path

from pretrain.characters.character import load_character
from pretrain.motion.clip import MotionClip
from pretrain.motion.dataset import load_dataset
from pretrain.motion.importers import SUFFIXES, is_recognized, read_clip
from pretrain.motion.importers.amc import read_bytes
from pretrain.motion.recipe import RECIPES

RECIPE_SUFFIXES = (".yaml", ".yml")
TEXT = (".txt", ".json", ".csv")


def is_recipe(path: str) -> bool:
    """Whether `path` is a YAML file or the name of a recipe that comes with the project."""
    return Path(path).suffix in RECIPE_SUFFIXES or (RECIPES / f"{path}.yaml").exists()


def find_files(path: str) -> list[Path]:
    """The file `path`, or the clips below the folder `path`; FileNotFoundError where there is
    nothing.
    """
    place = Path(path)
    if place.is_file():
        return [place]
    files = sorted(file for file in place.rglob("*") if _is_clip(file))
    if not files:
        recipes = ", ".join(sorted(recipe.stem for recipe in RECIPES.glob("*.yaml")))
        kinds = ", ".join(dict.fromkeys(SUFFIXES))
        raise FileNotFoundError(f"{path}: no file, no folder with {kinds}, no recipe of: {recipes}")
    return files


def _is_clip(file: Path) -> bool:
    """Whether a file of a folder is meant as a clip; text stands beside clips, too, as a licence
    does.
    """
    suffix = file.suffix.lower()
    return suffix in SUFFIXES and (suffix not in TEXT or is_recognized(file.read_bytes()))


def load_file(file: Path, character: str) -> MotionClip:
    """The clip of a file; ClipError says why there is none."""
    return read_clip(read_bytes(file), file.name, load_character(character).skeleton)


def load_clips(path: str, character: str) -> list[MotionClip]:
    """All clips of a recipe, a folder or a file; a recipe's without their mirror images."""
    if is_recipe(path):
        dataset = load_dataset(path, load_character(character).skeleton)
        return [*dataset.originals, *dataset.left_out]
    return [load_file(file, character) for file in find_files(path)]
