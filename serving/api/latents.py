"""z as a client gives it: the name of a training clip, or numbers."""

from __future__ import annotations

import numpy as np

from serving.api import sphere
from serving.models.skills import ServedSkill
from serving.wire import rows
from serving.wire.problems import Refusal, invalid, quoted
from serving.wire.rows import InputSpec


def read_latent(value: object, field: str, skill: ServedSkill, strict: bool = False) -> np.ndarray:
    """One z, (D,), on the sphere: a row of numbers, or the name of a training clip."""
    if isinstance(value, str):
        clips = skill.manifest.latent.clips
        if value not in clips:
            exists = ", ".join(clips) or "none"
            raise Refusal(
                404,
                "unknown_clip",
                f"no clip {quoted(value)}; there are: {exists}",
                field,
                "a clip's name",
            )
        return np.array(clips[value], np.float32)
    spec = InputSpec(field, skill.specs["z"].tensor, 1)
    parsed = rows.read(value, spec)
    if not parsed.single:
        raise invalid(
            "wrong_shape",
            f"{field} is a batch, not one z",
            field,
            f"[{spec.width}] or a clip's name",
        )
    return rows.project_to_sphere(parsed, field, strict)[0][0]


def refuse_opposite(a: np.ndarray, b: np.ndarray, field: str) -> None:
    """Raises Refusal for consecutive z, (D,), that are opposite: many shortest paths join them."""
    if sphere.opposite(a, b):
        message = f"{field} is opposite to the z before it: every great circle is as short"
        raise invalid("no_one_path", message, field, "a z in between")
