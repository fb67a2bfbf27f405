"""Skills by name: the z of a training clip, or one that the client wrote out; and the paths between
them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from serving.api import sphere
from serving.models.service import Service
from serving.models.skills import ServedSkill
from serving.wire import rows
from serving.wire.problems import Refusal, invalid, quoted
from serving.wire.rows import InputSpec
from serving.wire.schemas import InterpolateRequest, validate

MAX_POINTS = 64


async def interpolate_path(service: Service, fields: object) -> dict[str, Any]:
    """`steps` points on the sphere, through every z of `path`."""
    request = validate(InterpolateRequest, fields)
    skill = await service.get_skill(request.skill)
    points = (
        request.path
        if isinstance(request.path, Sequence | np.ndarray) and not isinstance(request.path, str)
        else ()
    )
    if not 2 <= len(points) <= MAX_POINTS:
        raise invalid(
            "wrong_shape",
            "path is not a list of two or more z",
            "path",
            f"2 to {MAX_POINTS} z or names",
        )
    latents = [read_latent(point, f"path[{i}]", skill) for i, point in enumerate(points)]
    for i, (a, b) in enumerate(itertools.pairwise(latents)):
        refuse_opposite(a, b, f"path[{i + 1}]")
    return {"z": sphere.path(np.array(latents), request.steps), "skill": skill.stamp}


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
    if sphere.opposite(a, b):
        message = f"{field} is opposite to the z before it: every great circle is as short"
        raise invalid("no_one_path", message, field, "a z in between")
