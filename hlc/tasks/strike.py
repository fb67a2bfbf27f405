"""Strike: go to a free box and topple it, with the bodies that may touch it. (ASE's task of that
name.)"""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Generator, Tensor
from torch.nn.functional import normalize

from hlc.tasks.base import GoalTask
from hlc.tasks.frames import place_from_heading, place_in_heading, reward_approach
from hlc.tasks.scene import Scene
from hlc.tasks.task import Range, uniform
from pretrain.characters.box import BOX_LAYOUT, Box
from pretrain.characters.rotations import (
    from_axis_angle,
    heading_direction,
    to_heading_frame,
    up_axis,
)
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import NotNegative, Positive

# Of nv-tlabs/ASE: the box (30 kg/m^3), and the shares of the reward.
BOX = Box(size=(0.4, 0.4, 1.8), mass=8.64)
TOPPLING_SHARE = 0.6
MOVING_SHARE = 0.4
APPROACH_SPEED = 1.0  # m/s towards the box that gives the full reward
TOPPLED_COSINE = 0.2  # cosine between the box's long axis and the vertical below which it is down


class Strike(GoalTask):
    """A goal is the state of the box, (13,) m, wxyz, m/s, rad/s, world frame. It is drawn standing,
    and then follows the simulation: a client sends the box as it is.

    A body that may not touch the box ends the episode as a fall does, while the box stands."""

    bodies: tuple[str, ...] = Field(
        default=("right_hand", "left_hand", "right_lower_arm", "left_lower_arm"),
        description="Names of the bodies that may touch the box",
    )
    distance_min: Positive = Field(default=1.0, description="m; nearest box")
    distance_max: Positive = Field(default=3.0, description="m; farthest box")
    turn_max: NotNegative = Field(
        default=math.pi, description="rad; largest turn from the heading to the box"
    )
    goal_time_min: Positive = Field(default=10.0, description="s; shortest time for a box")
    goal_time_max: Positive = Field(default=10.0, description="s; longest time for a box")

    def scene(self) -> Scene:
        return Scene(box=BOX, may_touch_box=self.bodies)

    def goal_layout(self) -> tuple[Part, ...]:
        return BOX_LAYOUT

    def goal_ranges(self) -> dict[str, Range]:
        return {
            "distance": (self.distance_min, self.distance_max),
            "direction": (-self.turn_max, self.turn_max),
            "yaw": (-math.pi, math.pi),
        }

    def required_bodies(self) -> tuple[str, ...]:
        return self.bodies

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> states of standing boxes (N, 13), world."""
        drawn = uniform(self.goal_ranges(), state.shape, rng)
        r = drawn["distance"]
        angle = drawn["direction"]
        level = place_from_heading(state, r * angle.cos(), r * angle.sin())
        height = torch.full_like(level[..., :1], BOX.size[2] / 2)
        rotation = from_axis_angle("z", drawn["yaw"])
        return torch.cat([level, height, rotation, level.new_zeros(*state.shape, 6)], -1)

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        """Place, long axis, velocity and rotation rate in the heading frame of the root, (..., 12).
        The box is square, so its yaw is left out."""
        heading = heading_direction(state.root_rot)
        vectors = (up_axis(normalize(goal[..., 3:7], dim=-1)), goal[..., 7:10], goal[..., 10:])
        local_vectors = [to_heading_frame(heading, vector) for vector in vectors]
        return torch.cat([place_in_heading(state, goal[..., :3]), *local_vectors], -1)

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """1 once the box is down; before, 0.6 for its tilt and 0.4 for walking to it."""
        direction = normalize(goal[..., :2] - state.root_pos[..., :2], dim=-1)
        moving = reward_approach(state, direction, APPROACH_SPEED)
        tilt = (1 - long_axis(goal)).clamp(0, 1)
        down = self.success(skeleton, state, goal)
        return torch.where(down, 1.0, TOPPLING_SHARE * tilt + MOVING_SHARE * moving)

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        return long_axis(goal) < TOPPLED_COSINE

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """From the root to the box, level; 0 once it is down."""
        apart = (goal[..., :2] - state.root_pos[..., :2]).norm(dim=-1)
        return torch.where(self.success(skeleton, state, goal), 0.0, apart)

    def potential(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """Minus meters to the box, minus its uprightness, 0 to 1."""
        down = self.success(skeleton, state, goal)
        upright = torch.where(down, 0.0, long_axis(goal).clamp(0, 1))
        return -self.distance(skeleton, state, goal) - upright


def long_axis(goal: Tensor) -> Tensor:
    """Cosine between the box's long axis and the vertical, 0 to 1 whichever end is up, (...)."""
    return up_axis(goal[..., 3:7])[..., 2].abs()
