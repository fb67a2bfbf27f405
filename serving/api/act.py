"""What /act and a controller's decision compute: fields of a request in, fields of the reply out.
Independent of the encoding."""

from __future__ import annotations

from typing import Any

import numpy as np

from serving.api.latents import read_latent
from serving.models.service import Service
from serving.models.skills import ServedSkill
from serving.wire import rows
from serving.wire.problems import invalid
from serving.wire.schemas import ActRequest, DecideRequest, validate


async def act(service: Service, fields: object) -> dict[str, Any]:
    """Joint targets for states and skills z: (J,) for one state, (B, J) for a batch."""
    request = validate(ActRequest, fields)
    skill = await service.get_skill(request.skill)
    state = rows.read(request.state, skill.specs["state"])
    named = isinstance(request.z, str)
    z = (
        rows.Rows(read_latent(request.z, "z", skill)[0][None], True)
        if named
        else rows.read(request.z, skill.specs["z"])
    )
    on_sphere, moved = rows.project_to_sphere(
        rows.broadcast(z, state, ("z", "state")), "z", strict=bool(request.strict)
    )
    targets = await skill.policy_batcher.submit(state.array, on_sphere)
    if request.seed is not None:
        targets = add_noise(skill, targets, request.seed)
    return {
        "targets": match_rank(targets, state.single),
        "z_normalised": moved,
        "skill": skill.stamp,
    }


async def decide(service: Service, name: str, fields: object) -> dict[str, Any]:
    """The controller's z for a state and a goal, and the joint targets that its own skill library
    gives for it."""
    request = validate(DecideRequest, fields)
    served = await service.get_controller(name)
    state = rows.read(request.state, served.specs["state"])
    goal = rows.broadcast(rows.read(request.goal, served.specs["goal"]), state, ("goal", "state"))
    z, decided_goal = await served.decide(state.array, goal.array)
    targets = await served.skill.policy_batcher.submit(state.array, z)
    answer = {"z": match_rank(z, state.single), "targets": match_rank(targets, state.single)}
    if served.memory_batcher is not None:
        answer["goal"] = match_rank(decided_goal, state.single)
    return {**answer, "controller": served.stamp, "skill": served.skill.stamp}


def add_noise(skill: ServedSkill, targets: np.ndarray, seed: int) -> np.ndarray:
    """`targets` plus Gaussian noise of the policy's training std; equal seeds give equal noise."""
    if skill.sigma is None:
        message = f"{skill.version.ref} does not say how wide its policy's noise is"
        raise invalid("not_sampled", message, "seed", "no seed: the mean action")
    noise = np.random.default_rng(seed).standard_normal(targets.shape, np.float32)
    return targets + skill.sigma * noise


def match_rank(array: np.ndarray, single: bool) -> np.ndarray:
    """The first row of a `single` request's array (1, ...), or the whole (B, ...)."""
    return np.ascontiguousarray(array[0] if single else array)
