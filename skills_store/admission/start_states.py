"""Admission of the start states of a version: as many rows as its manifest says, of finite numbers
and unit rotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from skills_store.manifest import Manifest

FLOAT32 = np.dtype("<f4")
ROTATION = "root_rot"
TOLERANCE = 1e-3  # of a quaternion's norm


def check_starts(manifest: Manifest, files: Mapping[str, bytes]) -> Iterator[str]:
    """Every reason against the start states, as text; none if the manifest has no start states."""
    starts = manifest.starts
    if starts is None:
        return
    if starts.file not in files:
        yield f"start states {starts.file} are missing"
        return
    if "policy" not in manifest.graphs:
        yield f"start states {starts.file} without a policy, whose state they are rows of"
        return
    state = manifest.graphs["policy"].input("state")
    rows = sum(excerpt.frames for excerpt in starts.excerpts)
    expected = rows * state.width * FLOAT32.itemsize
    data = files[starts.file]
    if len(data) != expected:
        needed = f"{rows} states of {state.width} numbers need {expected}"
        yield f"{starts.file} has {len(data)} bytes; {needed}"
        return
    states = np.frombuffer(data, FLOAT32).reshape(rows, state.width)
    if not np.isfinite(states).all():
        row = find_first_row(~np.isfinite(states))
        yield f"{starts.file} has numbers that are not finite, the first in row {row}"
        return
    for part in state.slices:
        if part.name == ROTATION:
            norms = np.linalg.norm(states[:, part.start : part.stop], axis=1)
            far = np.abs(norms - 1) > TOLERANCE
            if far.any():
                row = find_first_row(far[:, None])
                fault = "rotations that are no unit quaternions"
                yield f"{starts.file} has {fault}, the first in row {row}"


def find_first_row(wrong: np.ndarray) -> int:
    """The first row of (N, S) bool with a true."""
    return int(np.flatnonzero(wrong.any(axis=1))[0])
