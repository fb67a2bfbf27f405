"""/interpolate: a path along the sphere of skills, through z of clips or of the client."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from serving.api import sphere
from serving.api.latents import read_latent, refuse_opposite
from serving.models.service import Service
from serving.wire.problems import invalid
from serving.wire.schemas import InterpolateRequest, validate

MAX_POINTS = 64


async def interpolate_path(service: Service, fields: object) -> dict[str, Any]:
    """`steps` points on the sphere, through every z of `path`."""
    request = validate(InterpolateRequest, fields)
    skill = await service.get_skill(request.skill)
    points = request.path
    expected = f"2 to {MAX_POINTS} z or names"
    if isinstance(points, str) or not isinstance(points, Sequence | np.ndarray):
        raise invalid("wrong_shape", "path is not a list", "path", expected)
    if not 2 <= len(points) <= MAX_POINTS:
        raise invalid("wrong_shape", f"path has {len(points)} z", "path", expected)
    read = [read_latent(point, f"path[{i}]", skill) for i, point in enumerate(points)]
    latents = [z for z, _ in read]
    for i, (a, b) in enumerate(itertools.pairwise(latents)):
        refuse_opposite(a, b, f"path[{i + 1}]")
    return {
        "z": sphere.path(np.array(latents), request.steps),
        "z_normalised": any(moved for _, moved in read),
        "skill": skill.stamp,
    }
