"""Task: what a controller may be asked for. It draws goals, shows them to the policy and judges the
outcome.

A task is pure: it holds parameters and no state, and it draws from the generator that it is handed.
"""

from __future__ import annotations

from typing import Protocol

from torch import Generator, Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part


class Task(Protocol):
    """Goals are (N, G) in the world frame, so that a client sends plain world numbers."""

    @property
    def goal_time_min(self) -> float:
        """Shortest time that a goal stays, s."""
        ...

    @property
    def goal_time_max(self) -> float:
        """Longest time that a goal stays, s."""
        ...

    def goal_layout(self) -> tuple[Part, ...]:
        """How a goal lies in its vector: the contract of the controller's second input."""
        ...

    def draw(self, state: CharacterState, rng: Generator) -> Tensor:
        """New goals for characters that are in `state`, (N, ...) -> (N, G)."""
        ...

    def features(self, state: CharacterState, goal: Tensor) -> Tensor:
        """What the policy sees of its goal, (..., F). Heading-local, and simple enough for an ONNX
        graph."""
        ...

    def reward(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """What a control step that led to `state` is worth, (N,) in [0, 1]."""
        ...

    def distance(self, skeleton: Skeleton, state: CharacterState, goal: Tensor) -> Tensor:
        """How far the goal is from being met, (N,) m."""
        ...


def goal_width(task: Task) -> int:
    """G: numbers in one goal."""
    return task.goal_layout()[-1].stop
