"""GoalTask: the parameters that all tasks have, and what a task need not say."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

from hlc.tasks.scene import UPRIGHT, Scene
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class GoalTask(BaseModel):
    """A `Task` without bodies, place and potential of its own, until a subclass says otherwise.

    Each parameter NAME_min is checked against NAME_max."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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

    def scene(self) -> Scene:
        return UPRIGHT

    def required_bodies(self) -> tuple[str, ...]:
        return ()

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor | None:
        return None

    def progress(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor | None:
        distance = self.distance(skeleton, state, goal)
        return None if distance is None else -distance
