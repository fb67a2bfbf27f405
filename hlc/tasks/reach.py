"""Reach: bring a body to a point around the character. (ASE's task of that name, with the root
subtracted.)"""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Generator, Tensor

from hlc.tasks.base import GoalTask, limit_goal
from hlc.tasks.frames import body_position, gaussian, place_from_heading, place_in_heading
from hlc.tasks.task import Range, uniform
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import Positive
from skills_store.manifest import GoalLimit

SHARPNESS = 4.0  # 1/m^2, as in nv-tlabs/ASE
TARGET = Part("target", 0, 3, "m", "world")


class Reach(GoalTask):
    """A goal is the place where the body should be, (3,) m, world frame.

    Targets come from a box around the root, in the frame that the character faces along. Its
    heights are near those that the right hand passes through in the walking and running clips (0.79
    to 1.24 m): a library that only walks moves its hand by walking there, and cannot lift it. A
    library that punches or dances can do more: `reach.height_max=1.8`. Times are the 50 to 100
    control steps of nv-tlabs/ASE."""

    body: str = Field(default="right_hand", description="Name of the body that is to be there")
    distance_max: Positive = Field(
        default=1.0,
        description="m; half the side of the box of targets, along and across the heading",
    )
    height_min: Positive = Field(default=0.7, description="m; lowest target above the ground")
    height_max: Positive = Field(default=1.2, description="m; highest target above the ground")
    goal_time_min: Positive = Field(
        default=5 / 3, description="s; shortest time for which a target stays"
    )
    goal_time_max: Positive = Field(
        default=10 / 3, description="s; longest time for which a target stays"
    )
    success_distance: Positive = Field(
        default=0.2, description="m; a target nearer than this is reached"
    )

    def goal_layout(self) -> tuple[Part, ...]:
        return (TARGET,)

    def goal_ranges(self) -> dict[str, Range]:
        side = (-self.distance_max, self.distance_max)
        return {"ahead": side, "left": side, "height": (self.height_min, self.height_max)}

    def goal_limits(self) -> tuple[GoalLimit, ...]:
        """A target outside the heights is refused; one farther off than a corner of the box is
        clipped."""
        farthest = math.hypot(self.distance_max, self.distance_max)
        return (
            limit_goal(TARGET, "height", (self.height_min, self.height_max)),
            limit_goal(TARGET, "distance", (0.0, farthest), "clip"),
        )

    def required_bodies(self) -> tuple[str, ...]:
        return (self.body,)

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> targets (N, 3) m, world."""
        drawn = uniform(self.goal_ranges(), state.shape, rng)
        level = place_from_heading(state, drawn["ahead"], drawn["left"])
        return torch.cat([level, drawn["height"][..., None]], -1)

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        return place_in_heading(state, goal)

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """1 in the target, 0.37 half a meter away."""
        return gaussian(body_position(skeleton, state, self.body) - goal, SHARPNESS)

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return self.distance(skeleton, state, goal) < self.success_distance

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return (body_position(skeleton, state, self.body) - goal).norm(dim=-1)
