"""What a published version says of itself. Pydantic at the edge: an unknown field, shape or unit is
refused here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from skills_store.frozen_model import FrozenModel
from skills_store.graph import Graph

SCHEMA_VERSION = 3
OWN_OBSERVATIONS = "repertoire"
NAME_PATTERN = r"^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$"
DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Digest = Annotated[str, Field(pattern=DIGEST_PATTERN)]


class Character(FrozenModel):
    """The body: everything a simulator needs to apply the joint targets as they were trained.

    Torque at a joint = clip(kp (target - q) - kd q', +-torque_limit) - damping q'.
    """

    name: str
    skeleton: dict[str, Any] = Field(
        description="Bodies, joints, offsets and limits as plain lists; empty if not known"
    )
    joints: tuple[str, ...]
    kp: tuple[float, ...] = Field(description="N m / rad")
    kd: tuple[float, ...] = Field(
        description="N m s / rad, of the drive: it counts towards the limit"
    )
    damping: tuple[float, ...] = Field(description="N m s / rad, passive: it does not count")
    torque_limit: tuple[float, ...] = Field(description="N m")
    control_dt: float = Field(gt=0, description="s")
    mjcf: str = Field(description="The XML text itself, so that a client can build the very body")


class Action(FrozenModel):
    """Joint target in rad = offset + scale * (network output); already applied inside the graph."""

    offset: tuple[float, ...]
    scale: tuple[float, ...]
    std: tuple[float, ...] | None = Field(
        default=None,
        description="rad; of the policy's noise on each joint target at the end of training",
    )


class Latent(FrozenModel):
    """z lives on the unit hypersphere. `clips` names the embedding of each training clip."""

    dim: int = Field(gt=0)
    norm: Literal["unit_sphere"] = "unit_sphere"
    clips: dict[str, tuple[float, ...]] = Field(default={})


class Clip(FrozenModel):
    """A motion that it was trained on, and how often it was drawn. The library's own licence
    follows from its clips'.
    """

    name: str
    digest: Digest
    source: str
    licence: str
    weight: float
    mirror_of: str | None = Field(default=None, description="The clip whose mirror image it is")


class Excerpt(FrozenModel):
    """Consecutive frames of a training clip, one control step apart."""

    clip: str
    frames: int = Field(ge=2)
    upright: bool = Field(description="The root stays upright throughout the clip")


class Starts(FrozenModel):
    """States where episodes may begin, so that a controller can be trained without the clips.

    `file` holds the frames of all excerpts, one after the other, as float32, little-endian, in rows
    of the policy's `state`.
    """

    file: str
    excerpts: tuple[Excerpt, ...] = Field(min_length=1)


class Lineage(FrozenModel):
    """Where it comes from: clips, configuration, code, packages, machine. `config` is the whole
    configuration of the run.
    """

    clips: tuple[Clip, ...] = ()
    config: dict[str, Any]
    seed: int
    git_commit: str | None = None
    git_dirty: bool | None = None
    packages: dict[str, str] = Field(default={})
    hardware: str = ""


class Parent(FrozenModel):
    """The skill version that a controller was trained on, and is bound to."""

    name: Name
    version: int
    digest: Digest


Quantity = Literal["value", "height", "distance", "length"]
Beyond = Literal["refuse", "clip"]


class GoalLimit(FrozenModel):
    """The least and the most that a quantity of a goal may be, and what becomes of a goal beyond.

    `value` is each number of the part; `height` the third number of a place; `distance` that of a
    place from the root, along the ground; `length` that of a direction. `clip` puts a value or a
    height at its limit, and a place at the limit's distance in its own direction."""

    part: str = Field(description="Name of a slice of the goal")
    quantity: Quantity
    least: float
    most: float
    unit: str
    beyond: Beyond = "refuse"

    @model_validator(mode="after")
    def _check_order(self) -> GoalLimit:
        if self.least > self.most:
            raise ValueError(f"the least {self.part} is {self.least}, above the most {self.most}")
        return self


class Task(FrozenModel):
    """A controller's decision: every `llc_steps` control steps, z = omega(state, goal)."""

    name: str
    llc_steps: int = Field(gt=0)
    parent: Parent
    goal_limits: tuple[GoalLimit, ...] = Field(
        default=(), description="Of the goals that it was trained for; none are checked without"
    )


class Blob(FrozenModel):
    """Bytes, named by what they are."""

    digest: Digest
    size: int = Field(ge=0)


class Manifest(FrozenModel):
    """One immutable version. `kind` is "skills" (graphs policy, encoder, style) or "controller"
    (graph controller; of a state machine, also memory: its goal is what it remembers).

    `observations` says whose the graphs take. In ours, `state` is raw and a window is W states; a
    peer's `state` and `window` are features that its client computes, each with slices of its own.
    """

    schema_version: Literal[3] = SCHEMA_VERSION
    kind: Literal["skills", "controller"]
    observations: Literal["repertoire", "ase", "mimickit"] = OWN_OBSERVATIONS
    name: Name
    character: Character
    graphs: dict[str, Graph]
    latent: Latent
    action: Action | None = None
    starts: Starts | None = None
    task: Task | None = None
    card: dict[str, Any] = Field(default={}, description="The skill card: what it was measured by")
    lineage: Lineage
    licence: str
    files: dict[str, Blob] = Field(
        default={}, description="By name; written by the store when it is published"
    )

    @model_validator(mode="after")
    def _check_graphs(self) -> Manifest:
        needed = {"skills": {"policy", "encoder"}, "controller": {"controller"}}[self.kind]
        if missing := needed - set(self.graphs):
            raise ValueError(
                f"a manifest of kind {self.kind!r} lacks graphs: {', '.join(sorted(missing))}"
            )
        if self.kind == "controller" and self.task is None:
            raise ValueError("a controller's manifest needs `task`")
        if self.kind == "controller" and self.task is not None:
            self._check_goal_limits(self.task)
        return self

    def _check_goal_limits(self, task: Task) -> None:
        parts = {part.name for part in self.graphs["controller"].input("goal").slices}
        for limit in task.goal_limits:
            if limit.part not in parts:
                names = ", ".join(sorted(parts))
                raise ValueError(
                    f"goal_limits: no part {limit.part!r} of the goal; there are: {names}"
                )
