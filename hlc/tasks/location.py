"""Location: come to a place and stop there. (ASE's task of that name, which rewards any speed at
the place.)"""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Generator, Tensor
from torch.nn.functional import normalize

from hlc.tasks.base import GoalTask, limit_goal
from hlc.tasks.frames import (
    SPEED_SHARPNESS,
    gaussian,
    level_place_in_heading,
    place_from_heading,
    reward_approach,
)
from hlc.tasks.task import Range, uniform
from pretrain.characters.rotations import heading_direction
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import NotNegative, Positive
from skills_store.manifest import GoalLimit

# Of nv-tlabs/ASE: shares of the reward for place, velocity and facing, and their constants.
PLACE_SHARE = 0.5
MOVING_SHARE = 0.4
FACING_SHARE = 0.1
SHARPNESS = 0.5  # 1/m^2
APPROACH_SPEED = 1.0  # m/s towards the place that gives the full reward
PLACE = Part("place", 0, 2, "m", "world")


class Location(GoalTask):
    """A goal is a place on the ground, (2,) m, world frame; success is to stand there."""

    distance_min: NotNegative = Field(default=0.0, description="m; nearest place")
    distance_max: Positive = Field(default=5.0, description="m; farthest place")
    goal_time_min: Positive = Field(default=10.0, description="s; shortest time that a place stays")
    goal_time_max: Positive = Field(default=10.0, description="s; longest time that a place stays")
    success_distance: Positive = Field(
        default=0.5, description="m; a root nearer than this has arrived"
    )
    success_speed: Positive = Field(
        default=0.3, description="m/s; a root slower than this has stopped"
    )

    def goal_layout(self) -> tuple[Part, ...]:
        return (PLACE,)

    def goal_ranges(self) -> dict[str, Range]:
        return {
            "distance": (self.distance_min, self.distance_max),
            "direction": (-math.pi, math.pi),
        }

    def goal_limits(self) -> tuple[GoalLimit, ...]:
        """A farther place is clipped to `distance_max`."""
        return (limit_goal(PLACE, "distance", (0.0, self.distance_max), "clip"),)

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> places (N, 2) m, world."""
        drawn = uniform(self.goal_ranges(), state.shape, rng)
        r = drawn["distance"]
        angle = drawn["direction"]
        return place_from_heading(state, r * angle.cos(), r * angle.sin())

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        return level_place_in_heading(state, goal)

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """0.5 for the place; 0.5 for walking to and facing it, or for standing still once there."""
        offset = goal - state.root_pos[..., :2]
        velocity = state.root_vel[..., :2]
        direction = normalize(offset, dim=-1)
        moving = reward_approach(state, direction, APPROACH_SPEED)
        facing = (heading_direction(state.root_rot) * direction).sum(-1).clamp(0, 1)
        approach_reward = MOVING_SHARE * moving + FACING_SHARE * facing
        standstill_reward = (MOVING_SHARE + FACING_SHARE) * gaussian(velocity, SPEED_SHARPNESS)
        arrived = offset.norm(dim=-1) < self.success_distance
        moves = torch.where(arrived, standstill_reward, approach_reward)
        return PLACE_SHARE * gaussian(offset, SHARPNESS) + moves

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        arrived = self.distance(skeleton, state, goal) < self.success_distance
        return arrived & (state.root_vel[..., :2].norm(dim=-1) < self.success_speed)

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return (state.root_pos[..., :2] - goal).norm(dim=-1)
