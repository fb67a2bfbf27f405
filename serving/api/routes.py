"""The FastAPI routes. Each reads a request, runs a graph and writes the reply; the functions it
calls raise the refusals.

Two are only declared, for the OpenAPI document and for 405: the gateway answers their POST before
FastAPI, with `serving.api.fast_routes`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from serving import wire
from serving.api.app_state import get_service, refuse_if_draining
from serving.api.interpolate import interpolate_path
from serving.api.nearest import nearest
from serving.api.openapi import body_of
from serving.api.plan import plan
from serving.api.uploads import parse_upload, read_states
from serving.models.service import Service
from serving.models.skills import ServedSkill, controller_detail, skill_detail
from serving.wire import rows
from serving.wire.plan_schemas import PlanRequest, PlanResponse
from serving.wire.problems import PLAN_PROBLEMS, PROBLEMS, from_store, invalid
from serving.wire.reply import Reply
from serving.wire.schemas import (
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
    InterpolateRequest,
    InterpolateResponse,
    LatentListing,
    Readiness,
    ServedVersion,
    SkillDetail,
    SkillListing,
    validate,
)
from skills_store.errors import WrongKind

router = APIRouter(responses=PROBLEMS)


def fail_as_unreachable() -> NoReturn:
    raise RuntimeError("the gateway answers this route before FastAPI")


@router.post(
    "/act", response_model=ActResponse, tags=["skills"], openapi_extra=body_of(json=ActRequest)
)
async def act() -> NoReturn:
    """Joint targets for a state and a skill z; a batch for a batch."""
    fail_as_unreachable()


@router.post(
    "/controllers/{name}/act",
    response_model=DecideResponse,
    tags=["controllers"],
    openapi_extra=body_of(json=DecideRequest),
)
async def decide(name: str) -> NoReturn:
    """The controller's skill for a state and a goal, and the joint targets that its own skill
    library gives for it."""
    fail_as_unreachable()


@router.post(
    "/encode",
    response_model=EncodeResponse,
    tags=["skills"],
    openapi_extra=body_of(json=EncodeRequest, multipart=EncodeUpload),
)
async def encode(request: Request) -> Response:
    """z of every window of a clip, and of the whole; of JSON frames, or of a motion file as
    multipart/form-data."""
    service = get_service(request)
    headers = dict(request.headers.raw)
    encoding = wire.choose_encoding(headers)
    limit = service.settings.max_frames
    if headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data"):
        data, filename, ref = await parse_upload(request, service.settings.max_body)
        skill = await service.get_skill(ref)
        field = "file"
        frames = await service.runner.run_on_thread(
            read_states, data, filename, skill.manifest.character, limit
        )
    else:
        fields = validate(EncodeRequest, encoding.decode(await request.body(), headers))
        field = "frames"
        skill = await service.get_skill(fields.skill)
        frames = rows.read(fields.frames, skill.specs["frames"]).array
    reply_body, content_headers = encoding.encode(
        await service.runner.run_on_thread(_embedded, skill, frames, field)
    )
    return Reply(200, reply_body, content_headers).response()


def _embedded(skill: ServedSkill, frames: np.ndarray, field: str) -> dict[str, Any]:
    if len(frames) < skill.window:
        message = (
            f"{field} has {len(frames)} frames; one window of this skill's encoder is "
            f"{skill.window}"
        )
        raise invalid("clip_too_short", message, field, f"at least {skill.window} frames")
    try:
        with np.errstate(all="ignore"):  # what overflows is refused by `require_finite`
            embedding = skill.library.embed(frames)
    except WrongKind as error:  # an imported library with other observations
        raise from_store(error, "skill") from error
    z = rows.require_finite(embedding.windows)
    pooled = rows.require_finite(embedding.pooled)
    near = nearest(pooled, skill.manifest.latent)
    return {"z": z, "pooled": pooled, "window": skill.window, "nearest": near, "skill": skill.stamp}


@router.get("/skills", tags=["skills"])
async def list_skills(request: Request) -> SkillListing:
    """Every skill, its versions and aliases, and what is damaged."""
    service = get_service(request)
    return SkillListing(
        default=service.settings.skill, skills=await service.list_summaries("skills")
    )


@router.get("/skills/{ref}", tags=["skills"])
async def show_skill(request: Request, ref: str) -> SkillDetail:
    """All that a client needs to drive the character: state layout, joints, gains, body, the clips'
    z, the card."""
    return skill_detail(await get_service(request).get_skill(ref, "ref"))


@router.get("/skills/{ref}/latents", tags=["skills"])
async def list_latents(request: Request, ref: str) -> LatentListing:
    """The z of every training clip, by its name."""
    skill = await get_service(request).get_skill(ref, "ref")
    latents = {name: list(z) for name, z in skill.manifest.latent.clips.items()}
    return LatentListing(latents=latents, skill=ServedVersion.model_validate(skill.stamp))


@router.post(
    "/interpolate",
    response_model=InterpolateResponse,
    tags=["skills"],
    openapi_extra=body_of(json=InterpolateRequest),
)
async def interpolate(request: Request) -> Response:
    """A path along the sphere through two or more z, each written out or named by its training
    clip."""
    headers = dict(request.headers.raw)
    encoding = wire.choose_encoding(headers)
    answer = await interpolate_path(
        get_service(request), encoding.decode(await request.body(), headers)
    )
    data, content_headers = encoding.encode(answer)
    return Reply(200, data, content_headers).response()


@router.post(
    "/plan",
    response_model=PlanResponse,
    responses=PLAN_PROBLEMS,
    tags=["skills"],
    openapi_extra=body_of(json=PlanRequest),
)
async def plan_skill(request: Request) -> Response:
    """The skill with the highest return for a task, of those that are simulated from this state;
    needs the extra `plan`."""
    headers = dict(request.headers.raw)
    encoding = wire.choose_encoding(headers)
    answer = await plan(get_service(request), encoding.decode(await request.body(), headers))
    data, content_headers = encoding.encode(answer)
    return Reply(200, data, content_headers).response()


@router.get("/controllers", tags=["controllers"])
async def list_controllers(request: Request) -> ControllerListing:
    """Every controller, its versions and aliases."""
    return ControllerListing(controllers=await get_service(request).list_summaries("controller"))


@router.get("/controllers/{name}", tags=["controllers"])
async def show_controller(request: Request, name: str) -> ControllerDetail:
    """The task, the goal's layout, and the skill version that the controller is bound to."""
    return controller_detail(await get_service(request).get_controller(name))


@router.get("/healthz", tags=["operation"])
async def health() -> Health:
    """The process answers. Says nothing of the store: see /readyz."""
    return Health()


@router.get("/readyz", tags=["operation"])
async def ready(request: Request) -> Readiness:
    """The default skill is open; otherwise a Problem says why not, with status 503."""
    service: Service = get_service(request)
    refuse_if_draining(request)
    skill = ServedVersion.model_validate((await service.get_default_skill()).stamp)
    errors = service.skills.stale | service.controllers.stale
    stale = {ref: from_store(error, None).problem.message for ref, error in errors.items()}
    return Readiness(status="stale" if stale else "ready", skill=skill, stale=stale)


@router.get(
    "/metrics",
    tags=["operation"],
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Counts and latencies, for Prometheus."""
    return Response(get_service(request).metrics.text(), media_type=CONTENT_TYPE_LATEST)
