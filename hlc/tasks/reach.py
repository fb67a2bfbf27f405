"""Reach: bring the right hand to a point around the character. (ASE's task of that name, with the
root subtracted.)"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Generator, Tensor

from pretrain.characters.kinematics import forward
from pretrain.characters.rotations import heading_direction, to_heading_frame
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part

HAND = "right_hand"
SHARPNESS = 4.0  # 1/m^2, as in nv-tlabs/ASE
TARGET = Part("target", 0, 3, "m", "world")

Positive = Annotated[float, Field(gt=0)]


class Reach(BaseModel):
    """A goal is the place where the right hand should be, (3,) m, world frame.

    Targets come from a box around the root, in the frame that the character faces along. Its
    heights are those that the right hand passes through in the walking and running clips (0.75 to
    1.2 m): a library that only walks moves its hand by walking there, and cannot lift it. A library
    that punches or dances can do more: `reach.height_max=1.8`. Times are the 50 to 100 control
    steps of nv-tlabs/ASE."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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

    @model_validator(mode="after")
    def _ranges_are_ordered(self) -> Reach:
        for least, most in (("height_min", "height_max"), ("goal_time_min", "goal_time_max")):
            if getattr(self, least) > getattr(self, most):
                raise ValueError(
                    f"{least} {getattr(self, least)} is above {most} {getattr(self, most)}"
                )
        return self

    def goal_layout(self) -> tuple[Part, ...]:
        return (TARGET,)

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> targets (N, 3) m, world."""
        place = torch.rand(*state.shape, 3, generator=rng)
        ahead, left = ((2 * place[..., :2] - 1) * self.distance_max).unbind(-1)
        height = self.height_min + (self.height_max - self.height_min) * place[..., 2]
        c, s = heading_direction(state.root_rot).unbind(-1)
        x = state.root_pos[..., 0]
        y = state.root_pos[..., 1]
        return torch.stack([x + c * ahead - s * left, y + s * ahead + c * left, height], -1)

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        return target_in_heading(state, goal)

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return near(hand_position(skeleton, state), goal)

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return (hand_position(skeleton, state) - goal).norm(dim=-1)


def target_in_heading(state: CharacterState, target: Tensor) -> Tensor:
    """Target (..., 3) m, world -> seen from the root, in the root's heading frame, (..., 3) m."""
    return to_heading_frame(heading_direction(state.root_rot), target - state.root_pos)


def near(hand: Tensor, target: Tensor) -> Tensor:
    """exp(-4 |hand - target|^2): 1 in the target, 0.37 half a metre away. (..., 3), (..., 3) m ->
    (...)."""
    return (-SHARPNESS * (hand - target).square().sum(-1)).exp()


def hand_position(skeleton: Skeleton, state: CharacterState) -> Tensor:
    """Centre of the right hand by forward kinematics, (...) -> (..., 3) m, world."""
    positions, _ = forward(skeleton, state.root_pos, state.root_rot, state.joint_pos)
    return positions[..., skeleton.bodies.index(HAND), :]
