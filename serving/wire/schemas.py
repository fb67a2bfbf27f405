"""Requests and replies. `rows` checks the numbers, because it has the served skill's widths."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, ValidationError

from serving.wire.problems import Code, Refusal, describe_value, invalid, quoted
from skills_store.graph import Slice
from skills_store.manifest import Digest, GoalLimit

Row = list[float]
Batch = list[Row]
Parts = dict[str, Row | Batch]


class WireMessage(BaseModel):
    """A request or a reply. Null for an optional field means the same as no field."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Model = TypeVar("Model", bound=WireMessage)


def validate(model: type[Model], fields: object) -> Model:
    """The request with these decoded fields; its numbers are not checked yet."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _refusal(error, model) from None


def _refusal(error: ValidationError, model: type[WireMessage]) -> Refusal:
    first = error.errors(include_url=False)[0]
    fields = model.model_fields
    code: Code = "missing_field" if first["type"] == "missing" else "wrong_type"
    there = ", ".join(fields)
    if not first["loc"]:
        return invalid(code, "the body is not an object of fields", None, f"an object with {there}")
    name = str(first["loc"][0])
    if name not in fields:
        message = f"no field {quoted(name)}; there are: {there}"
        return invalid("unknown_field", message, quoted(name)[1:-1], f"only {there}")
    fault = "missing" if code == "missing_field" else describe_value(first["input"])
    expected = _describe_scalar(model, name) or fields[name].description
    return invalid(code, f"{name} is {fault}", name, expected)


@cache
def _describe_scalar(model: type[WireMessage], name: str) -> str | None:
    """The values that a field of one number or truth value takes; None for any other field."""
    schema = model.model_json_schema()["properties"][name]
    for kind in schema.get("anyOf", [schema]):
        if kind.get("type") == "integer" and {"minimum", "maximum"} <= kind.keys():
            return f"a whole number, {kind['minimum']} to {kind['maximum']}"
        if kind.get("type") == "boolean":
            return "true or false"
        if "maxLength" in kind:
            return f"text of at most {kind['maxLength']} characters"
    return None


class ActRequest(WireMessage):
    """One character's state and skill, or a batch of each, of the same length."""

    skill: str | None = Field(
        default=None, description="`name`, `name@version` or `name@alias`; the service's default"
    )
    state: SkipValidation[Row | Batch | Parts] = Field(
        description="[S], [B, S], or an object of named parts: SI units, world frame, "
        "quaternions wxyz. See GET /skills/{ref}"
    )
    z: SkipValidation[Row | Batch | str] = Field(
        description="[D] or [B, D] on the unit sphere, or the name of a training clip; one z "
        "counts for a whole batch"
    )
    strict: bool | None = Field(
        default=False,
        strict=True,
        description="true: refuse a z that is not on the sphere",
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**63 - 1,
        strict=True,
        description="Sample the policy's own noise; without it, its mean",
    )


class DecideRequest(WireMessage):
    state: SkipValidation[Row | Batch | Parts] = Field(description="As in /act")
    goal: SkipValidation[Row | Batch | Parts] = Field(
        description="[G], [B, G] or named parts. See GET /controllers/{name}"
    )


class EncodeRequest(WireMessage):
    """A clip as states at the skill's control rate, at least one window long."""

    skill: str | None = Field(default=None, description="As in /act")
    frames: SkipValidation[Batch | Parts] = Field(description="[T, S], or named parts of [T, ...]")


class EncodeUpload(WireMessage):
    """A clip file, resampled to the control rate and fitted to the skill's character."""

    skill: str | None = None
    file: str = Field(
        description="The file's bytes; its format is recognized by content",
        json_schema_extra={"format": "binary"},
    )


class InterpolateRequest(WireMessage):
    """A path along the unit sphere, through two or more skills."""

    skill: str | None = Field(default=None, description="As in /act")
    path: SkipValidation[list[Row | str]] = Field(
        description="2 to 64 z, each [D] or the name of a training clip"
    )
    steps: int = Field(
        ge=2, le=10_000, strict=True, description="Points on the path, both ends among them"
    )


class ServedVersion(WireMessage):
    """The bytes that computed a reply."""

    name: str
    version: int
    digest: Digest


class ActResponse(WireMessage):
    targets: Row | Batch = Field(
        description="Joint targets, rad, in the order of `joints`; [J] or [B, J], as `state`"
    )
    z_normalised: bool = Field(
        description="true: some z was not on the sphere, and was brought there"
    )
    skill: ServedVersion


class DecideResponse(WireMessage):
    z: Row | Batch
    targets: Row | Batch = Field(
        description="What the controller's own skill does with z in this state"
    )
    goal: Row | Batch | None = Field(
        default=None,
        description="Of a state machine alone: its memory, to be sent as the next decision's goal",
    )
    controller: ServedVersion
    skill: ServedVersion


class Neighbour(WireMessage):
    clip: str
    cosine: float


class EncodeResponse(WireMessage):
    z: Batch = Field(description="[N, D]: one per window, N = T - window + 1")
    pooled: Row = Field(description="[D]: the direction of the mean z")
    window: int = Field(description="Frames in one window")
    nearest: list[Neighbour] = Field(
        description="Training clips whose z is nearest to `pooled`, nearest first"
    )
    skill: ServedVersion


class LatentListing(WireMessage):
    latents: dict[str, Row] = Field(description="z of each training clip, by its name")
    skill: ServedVersion


class InterpolateResponse(WireMessage):
    z: Batch = Field(description="[steps, D], evenly spaced by angle")
    z_normalised: bool = Field(description="true: some z of `path` was not on the sphere")
    skill: ServedVersion


class Summary(WireMessage):
    """A line of the listing."""

    name: str
    versions: list[int] = Field(description="Oldest first; the last is `latest`")
    aliases: dict[str, int]
    faults: list[str] = Field(description="Versions that are not served, and why")


class SkillListing(WireMessage):
    default: str = Field(description="Answers requests that name no skill")
    skills: list[Summary]


class ControllerListing(WireMessage):
    controllers: list[Summary]


class SkillDetail(ServedVersion):
    """All that a client needs to drive the character: layouts, body, gains and the clips' own z."""

    created: datetime
    licence: str
    character: str
    joints: list[str]
    kp: list[float] = Field(description="N m / rad")
    kd: list[float] = Field(
        description="N m s / rad, of the drive: clip(kp (target - q) - kd q', +-torque_limit)"
    )
    damping: list[float] = Field(description="N m s / rad, passive: beside the drive and its limit")
    torque_limit: list[float] = Field(description="N m")
    control_dt: float = Field(description="s")
    mjcf: str = Field(description="The body itself, as MJCF")
    state_dim: int
    state: list[Slice] = Field(description="How a state lies in its row")
    latent_dim: int
    window: int
    clips: dict[str, Row] = Field(description="z of each training clip")
    card: dict[str, Any]


class ControllerDetail(ServedVersion):
    created: datetime
    licence: str
    task: str
    llc_steps: int = Field(description="Control steps for which one decision is held")
    state: list[Slice]
    goal_dim: int
    goal: list[Slice] = Field(description="How a goal lies in its row")
    goal_limits: list[GoalLimit] = Field(description="Goals beyond are clipped or refused")
    skill: ServedVersion
    card: dict[str, Any]


class Health(WireMessage):
    status: str = "ok"


class Readiness(WireMessage):
    """`stale` while some reference is served as it was, because its newest meaning cannot be:
    `stale` says why."""

    status: Literal["ready", "stale"] = "ready"
    skill: ServedVersion
    stale: dict[str, str] = Field(
        default_factory=dict, description="Reference -> what keeps it from being followed"
    )
