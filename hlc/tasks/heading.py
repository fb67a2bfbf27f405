"""Heading: move in a direction at a speed, and face along a direction. (ASE's steering.)"""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Generator, Tensor

from hlc.tasks.base import GoalTask
from hlc.tasks.frames import direction_from_heading, direction_in_heading, gaussian
from hlc.tasks.task import Range, uniform
from pretrain.characters.rotations import heading_direction
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import NotNegative, Positive

# s^2/m^2, of MimicKit for a narrow range of speeds. nv-tlabs/ASE has 0.25, which gives 0.8 of the
# reward for standing still where the goal is a slow walk.
SHARPNESS = 2.0
MOVING_SHARE = 0.7  # velocity's share of the reward, the remainder is for facing (nv-tlabs/ASE)
MIN_FACING_COSINE = math.cos(math.radians(30))


class Heading(GoalTask):
    """A goal is a direction of motion (2,), a speed (1,) m/s and a direction to face (2,), world
    frame. The character faces where it moves, unless `heading.free_facing=true`."""

    speed_min: NotNegative = Field(default=0.7, description="m/s; lowest speed of a goal")
    speed_max: NotNegative = Field(default=1.1, description="m/s; highest speed of a goal")
    turn_max: Positive = Field(
        default=math.pi, description="rad; largest turn from the heading to the direction"
    )
    free_facing: bool = Field(
        default=False, description="Draw the direction to face apart from that of motion"
    )
    success_error: Positive = Field(
        default=0.3, description="m/s; a velocity nearer than this is that of the goal"
    )

    def goal_layout(self) -> tuple[Part, ...]:
        return (
            Part("direction", 0, 2, "unit vector", "world"),
            Part("speed", 2, 3, "m/s", "scalar"),
            Part("facing", 3, 5, "unit vector", "world"),
        )

    def goal_ranges(self) -> dict[str, Range]:
        turn = (-self.turn_max, self.turn_max)
        return {"turn": turn, "speed": (self.speed_min, self.speed_max), "facing_turn": turn}

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> directions, speeds in m/s and facings (N, 5), world."""
        drawn = uniform(self.goal_ranges(), state.shape, rng)
        direction = direction_from_heading(state, drawn["turn"])
        facing = direction
        if self.free_facing:
            facing = direction_from_heading(state, drawn["facing_turn"])
        return torch.cat([direction, drawn["speed"][..., None], facing], -1)

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        direction = direction_in_heading(state, goal[..., :2])
        facing = direction_in_heading(state, goal[..., 3:])
        return torch.cat([direction, goal[..., 2:3], facing], -1)

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """0.7 for the velocity, 0 for moving the other way; 0.3 for facing. A speed of 0 has no
        other way."""
        along = (state.root_vel[..., :2] * goal[..., :2]).sum(-1)
        forward = (along >= 0) | (goal[..., 2] == 0)
        moving = forward * gaussian(velocity_error(state, goal), SHARPNESS)
        return MOVING_SHARE * moving + (1 - MOVING_SHARE) * facing_cosine(state, goal).clamp(0, 1)

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        moves = velocity_error(state, goal).norm(dim=-1) < self.success_error
        return moves & (facing_cosine(state, goal) > MIN_FACING_COSINE)

    def potential(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """Minus the errors of velocity, m/s, and of facing, 0 to 2."""
        turned = facing_cosine(state, goal).clamp_max(1) - 1
        return turned - velocity_error(state, goal).norm(dim=-1)


def velocity_error(state: CharacterState, goal: Tensor) -> Tensor:
    """Level velocity of the root minus the goal's, (..., 2) m/s, world."""
    return state.root_vel[..., :2] - goal[..., 2:3] * goal[..., :2]


def facing_cosine(state: CharacterState, goal: Tensor) -> Tensor:
    """Cosine between the heading and the direction to face, (...)."""
    return (heading_direction(state.root_rot) * goal[..., 3:]).sum(-1)
