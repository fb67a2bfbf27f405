"""Checkpoints: a tree of tensors and plain numbers on disk, whole or not at all. No pickled code is ever loaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch


def save(path: Path, tree: dict[str, Any]) -> None:
    """Write beside, flush to disk, then rename: a kill or a full disk leaves the last checkpoint whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            torch.save(tree, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(f"checkpoint not written to {path}: {error}; the last one there is intact") from error


def load(path: Path) -> dict[str, Any]:
    """The tree that `save` wrote."""
    return torch.load(path, weights_only=True)
