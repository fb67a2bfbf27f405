"""GoalTask: the tasks' common parameters, abstract methods, and defaults of the other methods."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Generator, Tensor

from hlc.tasks.scene import UPRIGHT, Scene
from hlc.tasks.task import Range
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import Positive
from skills_store.manifest import Beyond, GoalLimit, Quantity

UNIT_LENGTH = (0.99, 1.01)  # accepts a direction rounded to two decimals


def limit_goal(
    part: Part,
    quantity: Quantity,
    limits: Range,
    beyond: Beyond = "refuse",
) -> GoalLimit:
    """`quantity` of `part` between the two `limits`, in the part's own unit."""
    least, most = limits
    unit = "" if quantity == "length" else part.unit
    return GoalLimit(
        part=part.name, quantity=quantity, least=least, most=most, unit=unit, beyond=beyond
    )


class GoalTask(BaseModel):
    """A `Task` (hlc/tasks/task.py says what each method returns) with defaults for most methods.

    A subclass has `goal_layout`, `goal_ranges`, `draw`, `features`, `reward` and `success`. By
    default it needs no bodies and has no distance; its potential is the negative distance. Each
    parameter NAME_min is checked against NAME_max."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    distance_unit: ClassVar[str] = "m"

    goal_time_min: Positive = Field(default=5.0, description="s; shortest time that a goal stays")
    goal_time_max: Positive = Field(default=5.0, description="s; longest time that a goal stays")

    @model_validator(mode="after")
    def _ranges_are_ordered(self) -> GoalTask:
        for most in type(self).model_fields:
            least = most.removesuffix("_max") + "_min"
            if most.endswith("_max") and least in type(self).model_fields:
                low = getattr(self, least)
                high = getattr(self, most)
                if low > high:
                    raise ValueError(f"{least} {low} is above {most} {high}")
        return self

    @abstractmethod
    def goal_layout(self) -> tuple[Part, ...]: ...

    @abstractmethod
    def goal_ranges(self) -> dict[str, Range]: ...

    @abstractmethod
    def draw(self, state: CharacterState, rng: Generator) -> Tensor: ...

    @abstractmethod
    def features(self, state: CharacterState, goal: Tensor) -> Tensor: ...

    @abstractmethod
    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor: ...

    @abstractmethod
    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor: ...

    def goal_limits(self) -> tuple[GoalLimit, ...]:
        """Directions have the length 1; a scalar that is drawn from a range stays in it."""
        ranges = self.goal_ranges()
        limits: list[GoalLimit] = []
        for part in self.goal_layout():
            if part.unit == "unit vector":
                limits.append(limit_goal(part, "length", UNIT_LENGTH))
            elif part.frame == "scalar" and part.name in ranges:
                limits.append(limit_goal(part, "value", ranges[part.name]))
        return tuple(limits)

    def scene(self) -> Scene:
        return UPRIGHT

    def required_bodies(self) -> tuple[str, ...]:
        return ()

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor | None:
        return None

    def potential(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor | None:
        distance = self.distance(skeleton, state, goal)
        return None if distance is None else -distance
