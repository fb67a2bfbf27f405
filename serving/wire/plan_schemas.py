"""The request and reply of /plan."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SkipValidation

from serving.wire.schemas import Parts, Row, ServedVersion, WireMessage


class PlanRequest(WireMessage):
    """One character's state, and what it is to do."""

    skill: str | None = Field(default=None, description="As in /act")
    task: str = Field(max_length=64, description="Name of a task, as in docs/tasks.md")
    parameters: dict[str, Any] | None = Field(
        default=None, description="Of the task, in place of its defaults: an object by name"
    )
    state: SkipValidation[Row | Parts] = Field(description="[S], or an object of named parts")
    goal: SkipValidation[Row | Parts] = Field(
        description="[G] or an object of named parts, in the world frame"
    )
    last_z: SkipValidation[Row] | None = Field(
        default=None, description="[D], the skill of the decision before, which is then tried first"
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**63 - 1,
        strict=True,
        description="Of the skills that are tried; without it, others each time",
    )


class PlanResponse(WireMessage):
    z: Row = Field(description="[D]: to be held for `llc_steps`")
    targets: Row = Field(description="What the skill does with z in this state")
    predicted_return: float = Field(
        description="Sum of the rewards that were simulated over `horizon` control steps, with the "
        "gain in the task's potential, less the cost of a fall"
    )
    z_normalised: bool = Field(description="true: `last_z` was not on the sphere")
    horizon: int = Field(description="Control steps that were simulated")
    llc_steps: int = Field(description="Control steps after which to plan again")
    skill: ServedVersion
