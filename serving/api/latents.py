"""z as a client gives it: the name of a training clip, or numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serving.api import sphere
from serving.models.skills import ServedSkill
from serving.wire import rows
from serving.wire.problems import Refusal, invalid, quoted


def read_latent(
    value: object, field: str, skill: ServedSkill, strict: bool = False
) -> tuple[np.ndarray, bool]:
    """One z, (D,), on the sphere, and whether it was normalised: a row of numbers, or the name of a
    training clip."""
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
        return np.array(clips[value], np.float32), False
    parsed = rows.read(value, replace(skill.specs["z"].row, field=field))
    on_sphere, moved = rows.project_to_sphere(parsed, field, strict)
    return on_sphere[0], moved


def refuse_opposite(a: np.ndarray, b: np.ndarray, field: str) -> None:
    """Raises Refusal for consecutive z, (D,), that are opposite: many shortest paths join them."""
    if sphere.opposite(a, b):
        message = f"{field} is opposite to the z before it: every great circle is as short"
        raise invalid("no_one_path", message, field, "a z in between")
