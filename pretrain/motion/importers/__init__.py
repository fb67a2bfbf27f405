"""Motion files in, MotionClip out: one module a format, each with `read(data, name, skeleton) -> MotionClip`. Numpy only."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import PurePath

from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import CONTROL_RATE, ClipError, MotionClip
from pretrain.motion.importers import deepmimic

FORMATS = {".txt": deepmimic.read, ".json": deepmimic.read}


def read_clip(data: bytes, filename: str, skeleton: Skeleton, low_pass: float | None = None) -> MotionClip:
    """A clip at the control rate, smoothed above `low_pass` (Hz) if it is given, standing on the ground, from a file's bytes;
    the suffix tells the format."""
    path = PurePath(filename)
    reader = FORMATS.get(path.suffix.lower())
    if reader is None:
        raise ClipError(f"{filename}: no importer for {path.suffix!r} files; there are: {', '.join(FORMATS)}")
    clip = reader(data, filename, skeleton)
    if (len(clip) - 1) / clip.fps < 1 / CONTROL_RATE - 1e-9:
        raise ClipError(
            f"{filename}: shorter than a control step of {1 / CONTROL_RATE:.3f} s, so there is no motion in it"
        )
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    name = path.stem.removeprefix("humanoid3d_")
    clip = replace(clip, name=name, digest=digest).resampled()
    return (clip if low_pass is None else clip.low_passed(low_pass)).grounded()
