"""BoxGoals: places the box at a new goal; afterwards the goal is the state of the simulated box."""

from __future__ import annotations

import torch
from torch import Tensor

from hlc.tasks.task import Task
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.sim.backend import Backend


class BoxGoals:
    """For the worlds of `backend`, in which `task` is played. Does nothing for a task without a
    box."""

    def __init__(self, task: Task, skeleton: Skeleton, backend: Backend):
        """Raises ValueError where the task needs a box and the worlds have none."""
        scene = task.scene()
        self._box = backend.box if scene.box else None
        if scene.box and self._box is None:
            name = type(task).__name__
            raise ValueError(
                f"{name} needs a box in its worlds, expected a backend of "
                "Parent.backend(..., task.scene(), ...)"
            )
        self._task = task
        self._skeleton = skeleton
        self._forbidden = torch.tensor([x not in scene.may_touch_box for x in skeleton.bodies])

    def place(self, ids: Tensor, goal: Tensor) -> None:
        """Put the boxes of worlds `ids` (n,) at their `goal` (N, G)."""
        if self._box is not None and len(ids):
            self._box.place(ids, goal[ids])

    def update(self, goal: Tensor, broken: Tensor) -> Tensor:
        """The goals (N, G) after a control step. The boxes of worlds that broke, (N,) bool, are put
        back where their goals are."""
        if self._box is None:
            return goal
        self.place(broken.nonzero()[:, 0], goal)
        return self._box.state()

    def illegal_contact(self, state: CharacterState, goal: Tensor) -> Tensor:
        """Worlds in which a forbidden body touched the standing box, (N,) bool."""
        if self._box is None:
            return torch.zeros(len(goal), dtype=torch.bool)
        touched = (self._box.touching() & self._forbidden).any(-1)
        return touched & ~self._task.success(self._skeleton, state, goal)
