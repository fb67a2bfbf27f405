"""Recipe: the clips of a dataset, their weights and edits. YAML."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from reprlib import repr as shortened
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from pretrain.motion.editing.edit import Edit
from pretrain.motion.editing.edits import AnyEdit, find_edit
from pretrain.motion.licences import UNKNOWN

RECIPES = Path(__file__).parent / "recipes"


class Motion(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str  # relative to the recipe, "pybullet:NAME" or "everyday:NAME"
    skeleton: dict[str, str] = {}  # part of the body -> joint of the file, where names do not match
    asf: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="Skeleton of an .amc, relative to the recipe; the one beside it where left out",
    )
    name: Annotated[str, Field(pattern=r"^\w+$")] | None = (
        None  # of the clip; that of its file where left out
    )
    edits: tuple[AnyEdit, ...] = ()  # in their order, after low_pass
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    # Hz, at half power: higher frequencies are weakened. Above 7, at 30 frames a second, a Gaussian
    # leaves more than half
    low_pass: Annotated[float, Field(ge=2, le=7, strict=True)] | None = None
    source: str = ""
    licence: Annotated[str, Field(min_length=1)] = UNKNOWN

    @property
    def key(self) -> str:
        """Identifies a motion in its recipe: its name if it has one, else its file."""
        return self.name or self.file


class Recipe(BaseModel):
    """`motions:` of {file, weight}, as in MimicKit's dataset files, and what is done to them;
    `mirror` adds each clip's reflection. Fields that are not set here are those of `base`, a recipe
    of the project by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    base: Annotated[str, Field(pattern=r"^\w+$")] | None = None
    character: str = "humanoid"
    mirror: bool = True
    without: tuple[str, ...] = Field(
        default=(), description="Motions of `base` that are left out, by name or file"
    )
    motions: Annotated[tuple[Motion, ...], Field(min_length=1)]

    @field_validator("motions")
    @classmethod
    def _each_once(cls, motions: tuple[Motion, ...]) -> tuple[Motion, ...]:
        if twice := sorted(
            key for key, n in Counter(motion.key for motion in motions).items() if n > 1
        ):
            raise PydanticCustomError(
                "twice", "each file once; more than once: {twice}", {"twice": ", ".join(twice)}
            )
        return motions

    @model_validator(mode="after")
    def _without_a_base(self) -> Recipe:
        if self.without and self.base is None:
            raise PydanticCustomError("no_base", "without: there is no base to leave them out of")
        return self

    def over(self, base: Recipe) -> Recipe:
        """`base` with the fields that are set here: a motion of the same key is changed, any other
        is added after those of `base`. ValueError for one in `without` that `base` does not
        have."""
        motions = {motion.key: motion for motion in base.motions}
        for key in self.without:
            if key not in motions:
                names = ", ".join(motions)
                raise ValueError(
                    f"without: recipe {base.name!r} has no motion {key!r}; it has: {names}"
                )
            del motions[key]
        for motion in self.motions:
            motions[motion.key] = motions.get(motion.key, motion).model_copy(
                update=_explicit_fields(motion)
            )
        return base.model_copy(
            update={**_explicit_fields(self), "motions": tuple(motions.values())}
        )


def load_recipe(reference: str) -> tuple[Recipe, Path]:
    """A recipe by name or by path to a YAML file, and the folder that its files are relative to."""
    path = Path(reference)
    if path.suffix not in (".yaml", ".yml"):
        path = RECIPES / f"{reference}.yaml"
    if not path.exists():
        recipes = ", ".join(sorted(p.stem for p in RECIPES.glob("*.yaml")))
        raise FileNotFoundError(
            f"no dataset recipe {reference!r}; there are: {recipes}, or give a path to a .yaml file"
        )
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        recipe = _validate(document)
    except (
        yaml.YAMLError,
        ValueError,
        RecursionError,
    ) as error:  # ValueError: invalid text, a number too long
        raise ValueError(f"{path}: {error}") from None
    if recipe.base is None:
        return recipe, path.parent
    base, _ = load_recipe(recipe.base)
    try:
        return recipe.over(base), path.parent
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _validate(document: Any) -> Recipe:
    """The recipe of a YAML document; ValueError names each wrong field and those that exist."""
    try:
        return Recipe.model_validate(document)
    except ValidationError as error:
        errors = error.errors()
    # an invalid motion also counts as missing; report that only for an empty recipe
    causes = [e for e in errors if e["type"] != "too_short"] or errors
    models = [_find_model(document, e["loc"]) for e in causes]
    wrong = "; ".join(map(_describe, causes, models))
    # each once; an edit without a known verb has an error that lists the verbs
    existing = dict.fromkeys(f". {_list_fields(model)}" for model in models if model)
    raise ValueError(f"{wrong}{''.join(existing)}")


def _find_model(document: Any, loc: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The innermost model of an error's location; None for an edit without a known verb."""
    match loc:
        case ("motions", int(motion), "edits", int(edit), *_):
            return find_edit(list(document["motions"][motion]["edits"])[edit])
        case ("motions", int(), *_):
            return Motion
        case _:
            return Recipe


def _describe(error: ErrorDetails, model: type[BaseModel] | None) -> str:
    place = ".".join(map(str, error["loc"]))
    message = error["msg"]
    if model is not None and error["type"] == "model_type":
        message = f"expected {_describe_form(model)}"
    return f"{f'{place}: ' if place else ''}{message}, got {shortened(error['input'])}"


def _describe_form(model: type[BaseModel]) -> str:
    """Its required fields, or all if it has none, as YAML."""
    fields = model.model_fields
    required = [name for name, field in fields.items() if field.is_required()]
    form = f"{{{', '.join(f'{name}: ...' for name in required or fields)}}}"
    return f"{{{model.verb}: {form}}}" if issubclass(model, Edit) else form


def _list_fields(model: type[BaseModel]) -> str:
    name = f"Edit `{model.verb}`" if issubclass(model, Edit) else f"A {model.__name__.lower()}"
    return f"{name} has: {', '.join(model.model_fields) or 'no fields'}"


def _explicit_fields(model: BaseModel) -> dict[str, Any]:
    """Fields that were set, not left at their defaults."""
    return {name: getattr(model, name) for name in model.model_fields_set}
