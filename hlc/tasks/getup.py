"""Getup: rise from lying and stand. (The get-up reward of dm_control's humanoid: height times
uprightness times stillness, here as a sum, which rewards the first centimeter too.)"""

from __future__ import annotations

from pydantic import Field
from torch import Generator, Tensor

from hlc.tasks.base import GoalTask
from hlc.tasks.frames import body_position, gaussian
from hlc.tasks.scene import Scene
from hlc.tasks.task import Range, uniform
from pretrain.characters.rotations import up_axis
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import Positive

HEIGHT_SHARE = 0.6  # share of the reward for the height, the remainder is for standing still
SHARPNESS = 1.0  # s^2/m^2
MIN_UPRIGHT_COSINE = 0.9  # between the root's z axis and the vertical, of a body that stands


class Getup(GoalTask):
    """A goal is the height of the body, (1,) m. Episodes begin lying, as bodies fall under random
    targets, and no fall ends them."""

    body: str = Field(default="head", description="Name of the body whose height is the goal")
    height_min: Positive = Field(default=1.2, description="m; lowest height of a goal")
    height_max: Positive = Field(default=1.3, description="m; highest height of a goal")
    goal_time_min: Positive = Field(default=10.0, description="s; shortest time to get up")
    goal_time_max: Positive = Field(default=10.0, description="s; longest time to get up")
    success_shortfall: Positive = Field(
        default=0.1, description="m; a body at most this far below its goal is up"
    )
    success_speed: Positive = Field(default=0.5, description="m/s; a slower root stands")

    def scene(self) -> Scene:
        return Scene(lying=True)

    def goal_layout(self) -> tuple[Part, ...]:
        return (Part("height", 0, 1, "m", "scalar"),)

    def goal_ranges(self) -> dict[str, Range]:
        return {"height": (self.height_min, self.height_max)}

    def required_bodies(self) -> tuple[str, ...]:
        return (self.body,)

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> heights (N, 1) m."""
        return uniform(self.goal_ranges(), state.shape, rng)["height"][..., None]

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        return goal

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """0.6 for the height; 0.4, scaled by it, for being erect and at rest."""
        height = body_position(skeleton, state, self.body)[..., 2]
        risen = (height / goal[..., 0]).clamp(0, 1)
        erect = up_axis(state.root_rot)[..., 2].clamp(0, 1)
        rests = gaussian(state.root_vel, SHARPNESS)
        return risen * (HEIGHT_SHARE + (1 - HEIGHT_SHARE) * erect * rests)

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        risen = self.distance(skeleton, state, goal) < self.success_shortfall
        stands = state.root_vel.norm(dim=-1) < self.success_speed
        return risen & stands & (up_axis(state.root_rot)[..., 2] > MIN_UPRIGHT_COSINE)

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """How far the body is below its goal, (...) m; 0 above it."""
        height = body_position(skeleton, state, self.body)[..., 2]
        return (goal[..., 0] - height).clamp_min(0)
