"""Path: follow a curve on the ground at a speed. (In ProtoMotions' task the target moves with time;
here any point of the curve counts, if the character moves along it.)"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Generator, Tensor
from torch.nn.functional import normalize

from hlc.tasks.base import GoalTask
from hlc.tasks.frames import SPEED_SHARPNESS, gaussian, level_place_in_heading, place_from_heading
from hlc.tasks.task import Range, uniform
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from pretrain.rl.field_types import NotNegative, Positive

SHARPNESS = 2.0  # 1/m^2, of ProtoMotions
PLACE_SHARE = 0.5  # share of the reward for being on the curve whatever the speed
POINTS = 33  # samples of the curve for the nearest point: 0.25 m apart on 8 m


class Path(GoalTask):
    """A goal is a cubic Bezier curve, its four control points (8,) m, world frame, and a speed
    (1,) m/s. It begins at the root and leaves along the heading."""

    length: Positive = Field(default=8.0, description="m; end to end of the control points")
    bend_max: NotNegative = Field(
        default=2.0, description="m; how far the last two control points are from straight ahead"
    )
    speed_min: Positive = Field(default=0.8, description="m/s; lowest speed of a goal")
    speed_max: Positive = Field(default=1.0, description="m/s; highest speed of a goal")
    goal_time_min: Positive = Field(default=8.0, description="s; shortest time that a curve stays")
    goal_time_max: Positive = Field(default=8.0, description="s; longest time that a curve stays")
    success_distance: Positive = Field(
        default=0.3, description="m; a root nearer than this is on the curve"
    )

    def goal_layout(self) -> tuple[Part, ...]:
        points = tuple(Part(f"p{i}", 2 * i, 2 * i + 2, "m", "world") for i in range(4))
        return (*points, Part("speed", 8, 9, "m/s", "scalar"))

    def goal_ranges(self) -> dict[str, Range]:
        bend = (-self.bend_max, self.bend_max)
        return {"bend": bend, "end": bend, "speed": (self.speed_min, self.speed_max)}

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """(N, ...) -> control points in m and speeds in m/s (N, 9), world."""
        drawn = uniform(self.goal_ranges(), state.shape, rng)
        straight = torch.zeros(state.shape)
        lefts = (straight, straight, drawn["bend"], drawn["end"])
        third = torch.full(state.shape, self.length / 3)
        points = [place_from_heading(state, i * third, left) for i, left in enumerate(lefts)]
        return torch.cat([*points, drawn["speed"][..., None]], -1)

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        """The control points relative to the root, and the speed. The nearest point would jump, and
        exported graphs could differ there."""
        points = goal[..., :8].split(2, -1)
        local_points = [level_place_in_heading(state, point) for point in points]
        return torch.cat([*local_points, goal[..., 8:]], -1)

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """1 on the curve at its speed; 0.5 on it at rest or moving the wrong way."""
        offset, tangent = nearest(state.root_pos[..., :2], goal[..., :8])
        along = speed_along(state, tangent)
        moving = (along > 0) * gaussian((goal[..., 8] - along)[..., None], SPEED_SHARPNESS)
        return gaussian(offset, SHARPNESS) * (PLACE_SHARE + (1 - PLACE_SHARE) * moving)

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """On the curve, and moving along it at half the speed or more."""
        offset, tangent = nearest(state.root_pos[..., :2], goal[..., :8])
        follows = speed_along(state, tangent) >= 0.5 * goal[..., 8]
        return follows & (offset.norm(dim=-1) < self.success_distance)

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """From the curve, not from its end."""
        return nearest(state.root_pos[..., :2], goal[..., :8])[0].norm(dim=-1)


def curve(control: Tensor) -> tuple[Tensor, Tensor]:
    """Points and unit tangents of cubic Bezier curves, (..., 8) -> (..., POINTS, 2) twice."""
    t = torch.linspace(0, 1, POINTS, dtype=control.dtype)
    s = 1 - t
    weights = torch.stack([s**3, 3 * s**2 * t, 3 * s * t**2, t**3], -1)
    slopes = torch.stack([-3 * s**2, 3 * s**2 - 6 * s * t, 6 * s * t - 3 * t**2, 3 * t**2], -1)
    points = control.unflatten(-1, (4, 2))
    return weights @ points, normalize(slopes @ points, dim=-1)


def nearest(place: Tensor, control: Tensor) -> tuple[Tensor, Tensor]:
    """Offset of `place` (..., 2) m from the curve's nearest point, across the curve except beyond
    its ends, (..., 2) m; and the tangent there, (..., 2)."""
    points, tangents = curve(control)
    index = (points - place[..., None, :]).square().sum(-1).argmin(-1)
    offset = place - _pick(points, index)
    tangent = _pick(tangents, index)
    along = (offset * tangent).sum(-1)
    beyond = ((index == 0) & (along < 0)) | ((index == POINTS - 1) & (along > 0))
    across = offset - along[..., None] * tangent
    return torch.where(beyond[..., None], offset, across), tangent


def speed_along(state: CharacterState, tangent: Tensor) -> Tensor:
    """Speed of the root along `tangent` (..., 2), (...) m/s."""
    return (state.root_vel[..., :2] * tangent).sum(-1)


def _pick(rows: Tensor, index: Tensor) -> Tensor:
    """Row `index` (...) of each of `rows` (..., n, 2), (..., 2)."""
    return rows.take_along_dim(index[..., None, None], -2)[..., 0, :]
