"""The OpenAPI document: request bodies that the routes read raw, and examples made for the skill
being served.

Examples are generated, not written by hand, so that the service accepts each of them.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from serving.models.resting_pose import example_goal, example_latent, state_at_rest
from serving.models.skills import ServedController, ServedSkill
from serving.wire.plan_schemas import PlanRequest
from serving.wire.schemas import (
    ActRequest,
    DecideRequest,
    EncodeRequest,
    EncodeUpload,
    InterpolateRequest,
)
from skills_store.graph import Tensor

REF = "#/components/schemas/{model}"
BODIES = (ActRequest, DecideRequest, EncodeRequest, EncodeUpload, InterpolateRequest, PlanRequest)
DESCRIPTION = """Motor skills for physically simulated characters.

`POST /act` gives joint targets for a state and a skill z; `POST /encode` gives the z of a motion
clip; a controller chooses z for a goal. SI units, radians, z up, x forward, y left, quaternions
wxyz, world frame. Every reply that is not a success is a `Problem`, except to what is not HTTP."""


def body_of(**models: type[BaseModel]) -> dict[str, Any]:
    """A route's `openapi_extra` for bodies that it parses itself."""
    media = {"json": "application/json", "multipart": "multipart/form-data"}
    content = {
        media[key]: {"schema": {"$ref": REF.format(model=model.__name__)}}
        for key, model in models.items()
    }
    return {"requestBody": {"required": True, "content": content}}


def document(
    app: FastAPI, skill: ServedSkill | None, controller: ServedController | None
) -> dict[str, Any]:
    """The document, with examples for `skill` and `controller` if they are open."""
    if app.openapi_schema is None:  # once: it takes as long as several control steps
        app.openapi_schema = describe_routes(app)
    schema = {**app.openapi_schema, "paths": deepcopy(app.openapi_schema["paths"])}
    if skill is not None:
        _give_examples(schema, "/act", act_examples(skill))
        _give_examples(schema, "/encode", encode_examples(skill))
        _give_examples(schema, "/interpolate", interpolate_examples(skill))
    if controller is not None:
        _give_examples(schema, "/controllers/{name}/act", decide_examples(controller))
    return schema


def describe_routes(app: FastAPI) -> dict[str, Any]:
    """The document without examples."""
    schema = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes
    )
    _, schemas = models_json_schema([(model, "validation") for model in BODIES], ref_template=REF)
    schema["components"]["schemas"] |= schemas["$defs"]
    schema["servers"] = [{"url": "."}]  # relative to this document, wherever a proxy publishes it
    return schema


def act_examples(skill: ServedSkill) -> dict[str, Any]:
    row = state_at_rest(skill.manifest)[0].tolist()
    z = example_latent(skill.manifest)[0].tolist()
    return {
        "one row": {"state": row, "z": z},
        "a batch of two": {"state": [row, row], "z": [z, z]},
        "named parts": {
            "skill": skill.version.ref,
            "state": parts_of(row, skill.specs["state"].tensor),
            "z": z,
        },
    }


def encode_examples(skill: ServedSkill) -> dict[str, Any]:
    return {
        "standing still": {
            "frames": [state_at_rest(skill.manifest)[0].tolist()] * (skill.window + 1)
        }
    }


def interpolate_examples(skill: ServedSkill) -> dict[str, Any]:
    z = example_latent(skill.manifest)[0].tolist()
    return {"between two skills": {"path": [z, [z[-1], *z[:-1]]], "steps": 5}}


def decide_examples(controller: ServedController) -> dict[str, Any]:
    state = state_at_rest(controller.skill.manifest)[0].tolist()
    goal = example_goal(controller.specs["goal"].tensor, controller.goal_limits)[0].tolist()
    return {
        "one row": {"state": state, "goal": goal},
        "a batch of two": {"state": [state] * 2, "goal": [goal] * 2},
    }


def parts_of(row: list[float], tensor: Tensor) -> dict[str, list[float]] | list[float]:
    return {part.name: row[part.start : part.stop] for part in tensor.slices} or row


def _give_examples(schema: dict[str, Any], path: str, values: dict[str, Any]) -> None:
    content = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    content["examples"] = {name: {"value": value} for name, value in values.items()}
