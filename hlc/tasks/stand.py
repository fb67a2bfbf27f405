"""Stand: hold a place, and come back to it after a step aside."""

from __future__ import annotations

from pydantic import Field
from torch import Generator, Tensor

from hlc.tasks.base import GoalTask
from hlc.tasks.frames import gaussian, level_place_in_heading, place_from_heading
from hlc.tasks.task import Range, uniform
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import NotNegative, Positive

PLACE_SHARE = 0.5  # share of the reward for the place, the remainder is for not moving
SHARPNESS = 4.0  # 1/m^2 and s^2/m^2


class Stand(GoalTask):
    """A goal is a place on the ground, (2,) m, world frame, at or around the root."""

    distance_max: NotNegative = Field(
        default=0.2, description="m; how far ahead, behind or aside the place may be"
    )
    goal_time_min: Positive = Field(default=10.0, description="s; shortest time to stand")
    goal_time_max: Positive = Field(default=10.0, description="s; longest time to stand")
    success_distance: Positive = Field(
        default=0.3, description="m; a root nearer than this holds the place"
    )

    def goal_layout(self) -> tuple[Part, ...]:
        return (Part("place", 0, 2, "m", "world"),)

    def goal_ranges(self) -> dict[str, Range]:
        side = (-self.distance_max, self.distance_max)
        return {"ahead": side, "left": side}

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> places (N, 2) m, world."""
        drawn = uniform(self.goal_ranges(), state.shape, rng)
        return place_from_heading(state, drawn["ahead"], drawn["left"])

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        return level_place_in_heading(state, goal)

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        place = gaussian(state.root_pos[..., :2] - goal, SHARPNESS)
        still = gaussian(state.root_vel[..., :2], SHARPNESS)
        return place * (PLACE_SHARE + (1 - PLACE_SHARE) * still)

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return self.distance(skeleton, state, goal) < self.success_distance

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return (state.root_pos[..., :2] - goal).norm(dim=-1)
