"""Held skills: a decision every few control steps, whose z is held in between. A control loop calls
`step` at each step; the characters of a batch decide together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from serving.client.calls import Array
from serving.client.client import Client


class HeldSkill(ABC):
    """`step` gives the joint targets of the next control step."""

    def __init__(self, client: Client):
        self._client = client
        self._left = 0  # control steps for which z is still held
        self.z: Array | None = None  # of the last decision

    def restart(self) -> None:
        """Decide at the next step, for a new episode or a changed goal."""
        self._left = 0

    def step(self, state: ArrayLike, goal: ArrayLike) -> Array:
        """(S,), (G,) -> (J,); a controller also (B, S), (B, G) -> (B, J). Raises ServiceError."""
        if self.z is None or not self._left:
            self.z, self._left, targets = self._decide(state, goal)
        else:
            targets = self._client.act(state, self.z, self._skill())
        self._left -= 1
        return targets

    @abstractmethod
    def _decide(self, state: ArrayLike, goal: ArrayLike) -> tuple[Array, int, Array]:
        """z, the control steps for which to hold it, and the targets of the first of them."""

    @abstractmethod
    def _skill(self) -> str:
        """The version of the library that z belongs to."""


class HeldController(HeldSkill):
    """Decisions of a published controller. The constructor pins its version: moving the alias
    changes no running episode."""

    def __init__(self, client: Client, controller: str):
        super().__init__(client)
        self._detail = client.controller(controller)
        self.llc_steps: int = self._detail["llc_steps"]
        self.version = _pin(self._detail)
        self._library = _pin(self._detail["skill"])

    def _decide(self, state: ArrayLike, goal: ArrayLike) -> tuple[Array, int, Array]:
        decision = self._client.decide(self.version, state, goal)
        return decision.z, self.llc_steps, decision.targets

    def _skill(self) -> str:
        return self._library


class HeldMachine(HeldController):
    """Decisions of a published state machine, whose memory is kept in between. The `goal` of a step
    is the box's current state, (13,) or (B, 13); empty if the machine has no box."""

    def __init__(self, client: Client, controller: str):
        """Raises ValueError for a controller that is no state machine."""
        super().__init__(client, controller)
        self._parts = {part["name"]: part for part in self._detail["goal"]}
        if "ended" not in self._parts:
            raise ValueError(f"{controller} is no state machine, expected HeldController for it")
        boxes = [part for name, part in self._parts.items() if name.startswith("box_")]
        self._box_width = sum(part["stop"] - part["start"] for part in boxes)
        self.memory: Array | None = None  # (M,) or (B, M), after the last decision

    @property
    def ended(self) -> Array:
        """Whether a transition has led to the end, () or (B,) bool."""
        if self.memory is None:
            return np.zeros((), bool)
        return self.memory[..., self._parts["ended"]["start"]] > 0.5

    def begin(self) -> None:
        """Begin in the first state at the next step."""
        self.memory = None
        self.restart()

    def _decide(self, state: ArrayLike, goal: ArrayLike) -> tuple[Array, int, Array]:
        rows = np.asarray(state).shape[:-1]
        if self.memory is None:
            self.memory = np.zeros((*rows, self._detail["goal_dim"]), np.float32)
        memory = self.memory.copy()
        box = np.atleast_1d(np.asarray(goal, np.float32))
        if box.shape[-1] != self._box_width:
            expected = f"that of the box, {self._box_width} numbers" if self._box_width else "none"
            raise ValueError(f"the goal has {box.shape[-1]} numbers, expected {expected}")
        if self._box_width:
            memory[..., -self._box_width :] = box
        decision = self._client.decide(self.version, state, memory)
        self.memory = decision.goal
        return decision.z, self.llc_steps, decision.targets


class HeldPlan(HeldSkill):
    """Plans for one character. Each plan also tries the skill of the previous one. `others` are
    `parameters` of the task and `seed`, as in PlanRequest."""

    def __init__(self, client: Client, task: str, skill: str, **others: Any):
        super().__init__(client)
        self._task = task
        self._library = _pin(client.skill(skill))
        self._others = others

    def _decide(self, state: ArrayLike, goal: ArrayLike) -> tuple[Array, int, Array]:
        fields = {**self._others, "skill": self._library, "last_z": self.z}
        plan = self._client.plan(self._task, state, goal, **fields)
        return plan.z, plan.llc_steps, plan.targets

    def _skill(self) -> str:
        return self._library


def _pin(version: dict[str, Any]) -> str:
    """The reference by digest, which always means the same bytes."""
    return f"{version['name']}@{version['digest']}"
