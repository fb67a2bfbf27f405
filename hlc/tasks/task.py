"""Task: draws goals and computes their features, reward and success.

A task holds parameters and no state, and draws from the generator passed to it."""

from __future__ import annotations

from typing import ClassVar, Protocol

import torch
from torch import Generator, Tensor

from hlc.tasks.scene import Scene
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part
from skills_store.manifest import GoalLimit

Range = tuple[float, float]  # least, most


class Task(Protocol):
    """Goals are (N, G) in the world frame, so a client sends world coordinates.

    Most tasks derive from `hlc.tasks.base.GoalTask`, which has the optional methods."""

    distance_unit: ClassVar[str]  # of `distance`

    @property
    def goal_time_min(self) -> float:
        """Shortest time that a goal stays, s."""
        ...

    @property
    def goal_time_max(self) -> float:
        """Longest time that a goal stays, s."""
        ...

    def goal_layout(self) -> tuple[Part, ...]:
        """Layout of a goal vector, the controller's second input.

        A part's frame defines how it turns with the scene: a "world" part in m is a place, one in
        "quaternion wxyz" a rotation, any other "world" part a direction; a "scalar" does not
        change."""
        ...

    def goal_ranges(self) -> dict[str, Range]:
        """Ranges of the drawn quantities, by name; places and directions are relative to the
        character."""
        ...

    def goal_limits(self) -> tuple[GoalLimit, ...]:
        """Limits beyond which a served controller refuses or clips a goal. A range that depends on
        where the goal was drawn has none: of `path`, `stand` and `strike` no place is refused."""
        ...

    def scene(self) -> Scene:
        """Start pose and box of the episodes."""
        ...

    def required_bodies(self) -> tuple[str, ...]:
        """Bodies that the character must have."""
        ...

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """New goals for characters that are in `state`, (N, ...) -> (N, G)."""
        ...

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        """The policy's observation of the goal, (..., F): heading-local, and simple enough for
        ONNX."""
        ...

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """Reward of a control step that led to `state`, (N,) in [0, 1]."""
        ...

    def success(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """Whether the goal is met in `state`, (N,) bool."""
        ...

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor | None:
        """Distance to the goal, (N,), in `distance_unit`; None for a task that has none."""
        ...

    def potential(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor | None:
        """A potential (N,), at most 0 and larger nearer to the goal, for shaping and planning where
        the reward is flat; None for a task that has none."""
        ...


def goal_width(task: Task) -> int:
    """G: numbers in one goal."""
    return task.goal_layout()[-1].stop


def uniform(ranges: dict[str, Range], shape: tuple[int, ...], rng: Generator) -> dict[str, Tensor]:
    """One number of `shape` for each of `ranges`."""
    draws = torch.rand(*shape, len(ranges), generator=rng).unbind(-1)
    pairs = zip(ranges.items(), draws, strict=True)
    return {name: low + (high - low) * x for (name, (low, high)), x in pairs}


def check_bodies(task: Task, skeleton: Skeleton) -> None:
    """Raises ValueError where the character lacks a body that `task` needs."""
    for body in task.required_bodies():
        if body not in skeleton.bodies:
            existing = ", ".join(skeleton.bodies)
            raise ValueError(f"{skeleton.name} has no body {body!r}; there are: {existing}")


def checked_reward(task: Task, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
    """`task.reward`, (N,). Raises ValueError where it has another shape or is not finite."""
    reward = task.reward(skeleton, state, goal)
    name = type(task).__name__
    if reward.shape != state.shape:
        raise ValueError(
            f"{name}.reward has the shape {tuple(reward.shape)}, expected {state.shape}"
        )
    if not torch.isfinite(reward).all():
        row = int((~torch.isfinite(reward)).nonzero()[0, 0])
        raise ValueError(f"{name}.reward is {float(reward[row])} in world {row}, expected a number")
    return reward
