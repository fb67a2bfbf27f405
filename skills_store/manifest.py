"""What a published version says of itself. Pydantic at the edge: an unknown field, shape or unit is
refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA_VERSION = 3
OWN_OBSERVATIONS = "repertoire"
NAME_PATTERN = r"^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$"
DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Digest = Annotated[str, Field(pattern=DIGEST_PATTERN)]


class FrozenModel(BaseModel):
    # A NaN must stay one until the store refuses it; pydantic would write null in its place.
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


class Slice(FrozenModel):
    """A named part of a tensor's last axis, `[start, stop)`, with its unit and the frame it is
    given in.
    """

    name: str
    start: int = Field(ge=0)
    stop: int = Field(gt=0)
    unit: str
    frame: str


class Tensor(FrozenModel):
    """A graph's input or output. A string in `shape` is a free axis: `["B", 69]`."""

    name: str
    shape: tuple[int | str, ...]
    dtype: Literal["float32"] = "float32"
    slices: tuple[Slice, ...] = ()

    @property
    def width(self) -> int:
        """Length of the last axis."""
        assert isinstance(self.shape[-1], int)
        return self.shape[-1]

    @model_validator(mode="after")
    def _check_slices(self) -> Tensor:
        edges = [0, *(s.stop for s in self.slices)]
        starts = [s.start for s in self.slices]
        if self.slices and (starts != edges[:-1] or edges[-1] != self.shape[-1]):
            raise ValueError(
                f"slices of {self.name!r} must tile its last axis of {self.shape[-1]}, "
                f"got {starts} to {edges[1:]}"
            )
        return self


def make_latent_tensor(dim: int) -> Tensor:
    """z (B, D), on the unit sphere of a space of the library's own."""
    return Tensor(
        name="z",
        shape=("B", dim),
        slices=(Slice(name="z", start=0, stop=dim, unit="1", frame="latent"),),
    )


def make_target_tensor(joints: Sequence[str]) -> Tensor:
    """Joint position targets (B, J), a slice a joint."""
    each = tuple(
        Slice(name=name, start=i, stop=i + 1, unit="rad", frame="joint")
        for i, name in enumerate(joints)
    )
    return Tensor(name="targets", shape=("B", len(joints)), slices=each)


class Graph(FrozenModel):
    """One ONNX file: features and normalizers are inside it."""

    file: str
    opset: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parity: Parity

    def input(self, name: str) -> Tensor:
        return next(t for t in self.inputs if t.name == name)


class Parity(FrozenModel):
    """How far the graph was from the network it was made of, over `rows` rows at each of
    `batch_sizes`.

    No further than 1e-5, unless it is quantized: that it is, the gate sees.
    """

    max_abs_error: float = Field(ge=0)
    rows: int = Field(gt=0)
    batch_sizes: tuple[int, ...] = Field(min_length=1)


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
    clips: dict[str, tuple[float, ...]] = {}


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
    packages: dict[str, str] = {}
    hardware: str = ""


class Parent(FrozenModel):
    """The skill version that a controller was trained on, and is bound to."""

    name: Name
    version: int
    digest: Digest


class Task(FrozenModel):
    """A controller's decision: every `llc_steps` control steps, z = omega(state, goal)."""

    name: str
    llc_steps: int = Field(gt=0)
    parent: Parent


class Blob(FrozenModel):
    """Bytes, named by what they are."""

    digest: Digest
    size: int = Field(ge=0)


class Manifest(FrozenModel):
    """One immutable version. `kind` is "skills" (graphs policy, encoder, style) or "controller"
    (graph controller).

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
        return self


Graph.model_rebuild()
