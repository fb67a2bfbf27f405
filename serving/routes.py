"""The routes: each reads a request, asks a graph, writes the reply. What they refuse is raised by what they call.

All are `async`: a row takes 0.1 ms, less than handing it to a thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import Response

from serving import rows
from serving.bodies import in_kind, parse, parse_upload, reply
from serving.nearest import nearest
from serving.openapi import body_of
from serving.problems import Problem, invalid
from serving.schemas import (
    ActRequest,
    ActResponse,
    ControllerDetail,
    ControllerListing,
    DecideRequest,
    DecideResponse,
    EncodeRequest,
    EncodeResponse,
    EncodeUpload,
    Health,
    Readiness,
    ServedVersion,
    SkillDetail,
    SkillListing,
)
from serving.service import Service, checked, run
from serving.skills import ServedSkill, controller_detail, skill_detail
from serving.uploads import states_of

PROBLEMS: dict[int | str, dict[str, Any]] = {
    404: {
        "model": Problem,
        "description": "No such skill, version, alias or controller; the message lists what exists",
    },
    413: {"model": Problem, "description": "The body is larger than this service reads"},
    422: {"model": Problem, "description": "A value cannot be used; `field` is its path, `expected` what would be"},
    500: {"model": Problem, "description": "A defect of the service; the message has the request id that its log has"},
    503: {"model": Problem, "description": "The store cannot give this version now, for example because it is damaged"},
}
router = APIRouter(responses=PROBLEMS)


def _service(request: Request) -> Service:
    return request.app.state.service


@router.post("/act", response_model=ActResponse, tags=["skills"], openapi_extra=body_of(json=ActRequest))
async def act(request: Request) -> Response:
    """Joint targets for a state and a skill z; a batch for a batch."""
    service, asked = _service(request), await parse(request, ActRequest)
    skill, limit = await service.skill(asked.skill), service.settings.max_rows
    state, z = rows.read(asked.state, "state", skill.state, limit), rows.read(asked.z, "z", skill.z, limit)
    rows.paired(state, z, ("state", "z"))
    targets = await run(skill.library.act, state.array, z.array)
    return reply({"targets": in_kind(targets, state.one), "skill": skill.stamp})


@router.post(
    "/controllers/{name}/act",
    response_model=DecideResponse,
    tags=["controllers"],
    openapi_extra=body_of(json=DecideRequest),
)
async def decide(request: Request, name: str) -> Response:
    """The controller's skill for a state and a goal, and the joint targets that its own skill library gives for it."""
    service, asked = _service(request), await parse(request, DecideRequest)
    served, limit = await service.controller(name), service.settings.max_rows
    state = rows.read(asked.state, "state", served.state, limit)
    goal = rows.read(asked.goal, "goal", served.goal, limit)
    rows.paired(state, goal, ("state", "goal"))
    z = await run(served.controller.decide, state.array, goal.array)
    targets = await run(served.skill.library.act, state.array, z)
    answer = {"z": in_kind(z, state.one), "targets": in_kind(targets, state.one)}
    return reply({**answer, "controller": served.stamp, "skill": served.skill.stamp})


@router.post(
    "/encode",
    response_model=EncodeResponse,
    tags=["skills"],
    openapi_extra=body_of(json=EncodeRequest, multipart=EncodeUpload),
)
async def encode(request: Request) -> Response:
    """z of every window of a clip, and of the whole; of JSON frames, or of a motion file as multipart/form-data."""
    service = _service(request)
    limit = service.settings.max_frames
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        data, filename, ref = await parse_upload(request, service.settings.max_body)
        skill, field = await service.skill(ref), "file"
        frames = await run_sync(states_of, data, filename, skill.manifest.character, limit)
    else:
        asked, field = await parse(request, EncodeRequest), "frames"
        skill = await service.skill(asked.skill)
        frames = rows.read_frames(asked.frames, field, skill.state, limit)
    return reply(await run_sync(_embedded, skill, frames, field))


def _embedded(skill: ServedSkill, frames: np.ndarray, field: str) -> dict[str, Any]:
    if len(frames) < skill.window:
        message = f"{field} has {len(frames)} frames; one window of this skill's encoder is {skill.window}"
        raise invalid("clip_too_short", message, field, f"at least {skill.window} frames")
    with np.errstate(all="ignore"):  # what overflows is refused by `checked`
        found = skill.library.embed(frames)
    z, pooled = checked(found.windows), checked(found.pooled)
    near = nearest(pooled, skill.manifest.latent)
    return {"z": z, "pooled": pooled, "window": skill.window, "nearest": near, "skill": skill.stamp}


@router.get("/skills", tags=["skills"])
async def list_skills(request: Request) -> SkillListing:
    """Every skill, its versions and aliases, and what is damaged."""
    service = _service(request)
    return SkillListing(default=service.settings.skill, skills=await service.listed("skills"))


@router.get("/skills/{ref}", tags=["skills"])
async def show_skill(request: Request, ref: str) -> SkillDetail:
    """All that a client needs to drive the character: state layout, joints, gains, body, the clips' z, the card."""
    return skill_detail(await _service(request).skill(ref, "ref"))


@router.get("/controllers", tags=["controllers"])
async def list_controllers(request: Request) -> ControllerListing:
    """Every controller, its versions and aliases."""
    return ControllerListing(controllers=await _service(request).listed("controller"))


@router.get("/controllers/{name}", tags=["controllers"])
async def show_controller(request: Request, name: str) -> ControllerDetail:
    """The task, the goal's layout, and the skill version that the controller is bound to."""
    return controller_detail(await _service(request).controller(name))


@router.get("/healthz", tags=["operation"])
async def health() -> Health:
    """The process answers. Says nothing of the store: see /readyz."""
    return Health()


@router.get("/readyz", tags=["operation"])
async def ready(request: Request) -> Readiness:
    """The default skill is open; otherwise a Problem says why not, with status 503."""
    return Readiness(skill=ServedVersion.model_validate((await _service(request).default()).stamp))
