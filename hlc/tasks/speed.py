"""Speed: move at a given speed, wherever the character faces. (Peng et al. 2022, section 7.)"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Generator, Tensor

from hlc.tasks.base import GoalTask
from hlc.tasks.frames import gaussian
from hlc.tasks.task import Range, uniform
from pretrain.characters.rotations import heading_direction
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import NotNegative, Positive

SHARPNESS = 4.0  # s^2/m^2: an error of 0.5 m/s gives 0.37


class Speed(GoalTask):
    """A goal is a speed along the heading, (1,) m/s.

    The default range is that of the bundled walks; they run at 3.2 to 3.7 m/s, and nothing moves
    at a speed between."""

    distance_unit: ClassVar[str] = "m/s"

    speed_min: NotNegative = Field(default=0.7, description="m/s; lowest speed of a goal")
    speed_max: NotNegative = Field(default=1.1, description="m/s; highest speed of a goal")
    success_error: Positive = Field(
        default=0.25, description="m/s; a speed nearer than this is that of the goal"
    )

    def goal_layout(self) -> tuple[Part, ...]:
        return (Part("speed", 0, 1, "m/s", "scalar"),)

    def goal_ranges(self) -> dict[str, Range]:
        return {"speed": (self.speed_min, self.speed_max)}

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> speeds (N, 1) m/s."""
        return uniform(self.goal_ranges(), state.shape, rng)["speed"][..., None]

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        return goal

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return gaussian(speed_error(state, goal), SHARPNESS)

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return self.distance(skeleton, state, goal) < self.success_error

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """Absolute speed error, (...) m/s."""
        return speed_error(state, goal)[..., 0].abs()


def speed_error(state: CharacterState, goal: Tensor) -> Tensor:
    """Speed of the root along the heading minus the goal's, (..., 1) m/s."""
    ahead = heading_direction(state.root_rot)
    return (state.root_vel[..., :2] * ahead).sum(-1, keepdim=True) - goal
