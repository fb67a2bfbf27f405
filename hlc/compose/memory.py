"""The memory of a published state machine: one vector, which the client passes on at each decision
in place of a goal. Zeros start the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hlc.compose.ground_frame import ground_frame, to_world
from hlc.compose.state_machine import END, State, StateMachine
from hlc.tasks.base import limit_goal
from hlc.tasks.task import Range, Task
from pretrain.characters.box import BOX_LAYOUT
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, Part, unflatten
from skills_store.manifest import GoalLimit

MEMORY_LAYOUT = (
    Part("state_index", 0, 1, "1", "scalar"),  # from 1, in the order of the file; 0: not begun
    Part("decisions", 1, 2, "1", "scalar"),  # since the state was entered
    Part("ended", 2, 3, "1", "scalar"),  # 1 once a transition has led to `end`
    Part("origin", 3, 5, "m", "world"),  # on the ground below the root, where the machine began
    Part("origin_heading", 5, 7, "unit vector", "world"),
    Part("entry", 7, 9, "m", "world"),  # the same, where the present state was entered
    Part("entry_heading", 9, 11, "unit vector", "world"),
)
INDEX = slice(0, 1)
DECISIONS = slice(1, 2)
ENDED = slice(2, 3)
ORIGIN = slice(3, 7)
ENTRY = slice(7, 11)
WIDTH = 11
BOX = slice(WIDTH, WIDTH + BOX_LAYOUT[-1].stop)
MOST_DECISIONS = 2.0**24  # a count in float32 stops there


def memory_layout(box: bool) -> tuple[Part, ...]:
    """Layout of a memory (M,). Last is the state of a box, which the client sends."""
    if not box:
        return MEMORY_LAYOUT
    shifted = (Part(x.name, x.start + WIDTH, x.stop + WIDTH, x.unit, x.frame) for x in BOX_LAYOUT)
    return (*MEMORY_LAYOUT, *shifted)


def memory_limits(states: int) -> tuple[GoalLimit, ...]:
    """Limits beyond which the service refuses a memory of a machine with `states` states: no state
    has another number, so z would be 0."""
    limits: dict[str, Range] = {
        "state_index": (0.0, float(states)),
        "decisions": (0.0, MOST_DECISIONS),
        "ended": (0.0, 1.0),
    }
    parts = {part.name: part for part in MEMORY_LAYOUT}
    return tuple(limit_goal(parts[name], "value", bounds) for name, bounds in limits.items())


def empty_memory(rows: int, box: bool) -> Tensor:
    """Memories (rows, M) that begin a machine."""
    memory = torch.zeros(rows, memory_layout(box)[-1].stop)
    if box:
        memory[:, BOX.start + 3] = 1.0  # w of the quaternion
    return memory


@dataclass(frozen=True)
class Stage:
    """A state of the machine with the inputs of its transitions and its goal."""

    state: State
    task: Task
    goal: Tensor  # (G,), in the frame `state.frame`; zeros where the goal is the box
    decisions: int | None  # time limit of the state

    def goals(self, memory: Tensor) -> Tensor:
        """Goals (B, G), world frame, of characters with `memory` (B, M)."""
        if self.task.scene().box is not None:
            return memory[:, BOX]
        frame = memory[:, ENTRY if self.state.frame == "entry" else ORIGIN]
        goal = self.goal.expand(memory.shape[0], -1)
        return to_world(goal, self.task.goal_layout(), frame)


class NextMemory(nn.Module):
    """state (B, S), memory (B, M) -> the memory (B, M) with which the decision in `state` is made.

    As in `player`, success counts from the second decision in a state on, and precedes the time
    limit. Falls are not detected; a machine with `on_fall` cannot be published."""

    def __init__(self, machine: StateMachine, stages: tuple[Stage, ...], skeleton: Skeleton):
        super().__init__()
        self._stages = stages
        self._skeleton = skeleton
        self._numbers = {name: i for i, name in enumerate(machine.states, 1)}

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        body = unflatten(state)
        here = ground_frame(body)
        begun = goal[:, INDEX] > 0.5
        index = torch.where(begun, goal[:, INDEX], 1.0)
        decisions = torch.where(begun, goal[:, DECISIONS] + 1, 0.0)
        origin = torch.where(begun, goal[:, ORIGIN], here)
        entry = torch.where(begun, goal[:, ENTRY], here)
        box = goal[:, WIDTH:]
        memory = torch.cat([index, decisions, goal[:, ENDED], origin, entry, box], -1)
        index, ended, entered = self._follow(body, memory)
        decisions = torch.where(entered, 0.0, decisions)
        entry = torch.where(entered, here, entry)
        return torch.cat([index, decisions, ended, origin, entry, box], -1)

    def _follow(self, body: CharacterState, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """After the transitions, (B, 1) each: the state's number, whether the machine has ended,
        and whether a state was entered, possibly the same one again."""
        index = memory[:, INDEX]
        ended = memory[:, ENDED]
        entered = torch.zeros_like(ended)
        for cause, name in self._transitions(body, memory):
            if name == END:
                ended = torch.where(cause, 1.0, ended)
            else:
                index = torch.where(cause, float(self._numbers[name]), index)
                entered = torch.where(cause, 1.0, entered)
        return index, ended, entered > 0.5

    def _transitions(self, body: CharacterState, memory: Tensor) -> Iterator[tuple[Tensor, str]]:
        """The rows of each transition, (B, 1) bool, and its target; at most one per row."""
        decisions = memory[:, DECISIONS]
        for number, stage in enumerate(self._stages, 1):
            state = stage.state
            present = ((memory[:, INDEX] - number).abs() < 0.5) & (memory[:, ENDED] < 0.5)
            if state.on_success is not None:
                success = stage.task.success(self._skeleton, body, stage.goals(memory))
                met = present & success[:, None] & (decisions > 0.5)
                yield met, state.on_success
                present = present & ~met
            if stage.decisions is not None and state.on_time is not None:
                yield present & (decisions > stage.decisions - 0.5), state.on_time


class StageGoals(nn.Module):
    """state (B, S), memory (B, M) -> the concatenated goals of all stages, then a one-hot of the
    present stage, (B, G1 + ... + Gn + n)."""

    def __init__(self, stages: tuple[Stage, ...]):
        super().__init__()
        self._stages = stages

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        goals = [stage.goals(goal) for stage in self._stages]
        numbers = range(1, len(self._stages) + 1)
        present = [((goal[:, INDEX] - i).abs() < 0.5).to(state.dtype) for i in numbers]
        return torch.cat([*goals, *present], -1)
