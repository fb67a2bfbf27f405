"""Rows of a version's tensors for a character at rest: to warm graphs, and for examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skills_store.graph import Tensor
from skills_store.manifest import GoalLimit, Manifest

STANDING = {"root_pos": [0.0, 0.0, 0.9], "root_rot": [1.0, 0.0, 0.0, 0.0]}


def state_at_rest(manifest: Manifest) -> np.ndarray:  # (1, S)
    """Upright, in the action's offset pose (the mean of the clips) if the version has one."""
    action = manifest.action
    values = {"joint_pos": [round(x, 4) for x in action.offset]} if action else {}
    return make_resting_row(manifest.graphs["policy"].input("state"), values)


def example_latent(manifest: Manifest) -> np.ndarray:  # (1, D)
    """A training clip's z; a fixed point of the sphere if there are no clips."""
    clips = manifest.latent.clips.values()
    return np.array(
        [next((list(z) for z in clips), [1.0] + [0.0] * (manifest.latent.dim - 1))], np.float32
    )


def example_goal(tensor: Tensor, limits: Sequence[GoalLimit]) -> np.ndarray:  # (1, G)
    """A goal within `limits`, for a character at rest."""
    row = make_resting_row(tensor)
    for limit in limits:
        part = next(part for part in tensor.slices if part.name == limit.part)
        values = row[0, part.start : part.stop]
        if limit.quantity == "height":
            values[2] = np.clip(values[2], limit.least, limit.most)
        elif limit.quantity == "value":
            values[:] = np.clip(values, limit.least, limit.most)
        else:  # the length of a direction, or the distance of a place
            length = float(np.linalg.norm(values[:2]))
            values[0] += np.clip(length, limit.least, limit.most) - length
    return row


def make_resting_row(
    tensor: Tensor, values: dict[str, list[float]] | None = None
) -> np.ndarray:  # (1, width)
    """Zeros, except for known values and for rotations, where zero is invalid."""
    row = [0.0] * tensor.width
    values = STANDING | (values or {})
    for part in tensor.slices:
        default = [1.0, 0.0, 0.0, 0.0] if "wxyz" in part.unit else row[part.start : part.stop]
        value = values.get(part.name, default)
        row[part.start : part.stop] = value if len(value) == part.stop - part.start else default
    return np.array([row], np.float32)
