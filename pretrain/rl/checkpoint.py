"""Checkpoints: a tree of tensors and plain numbers on disk, written atomically. No pickled code is
loaded."""

from __future__ import annotations

import os
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile, ZipFile

import torch


def save(path: Path, tree: dict[str, Any]) -> None:
    """Write a second file, flush it to disk, then rename it: a kill or a full disk leaves the last
    checkpoint intact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            torch.save(tree, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, RuntimeError) as error:  # torch: the disk is full
        temporary.unlink(missing_ok=True)
        first = str(error).partition("\n")[0]
        reason = first if isinstance(error, OSError) else f"the disk may be full ({first})"
        remains = "the last one there is intact" if path.exists() else "nothing else is touched"
        raise OSError(f"checkpoint not written to {path}: {reason}; {remains}") from error


def load(path: Path) -> dict[str, Any]:
    """The tree that `save` wrote. ValueError for anything else, also for a flipped bit: torch
    checks no checksum."""
    try:
        with ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise BadZipFile(f"{damaged} is not what was written")
        return torch.load(path, weights_only=True)
    except (BadZipFile, RuntimeError, EOFError, UnpicklingError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        text = (
            f"{path} is no checkpoint that can be read ({reason}); without it, its run begins anew"
        )
        raise ValueError(text) from error
