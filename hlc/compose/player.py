"""Plays a state machine with one character until the machine ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from hlc.box_goals import BoxGoals
from hlc.compose.behavior import Behavior, check_box, scene_of
from hlc.compose.state_machine import END, StateMachine
from hlc.measures import count_control_steps
from hlc.parent import Parent, SimulationConfig
from hlc.tasks.task import Task
from pretrain.characters.placement import place
from pretrain.characters.rotations import conjugate, heading_rotation
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE, control_steps
from pretrain.sim.backend import Backend
from pretrain.sim.ground import touches_beyond_feet

WORLD_IDS = torch.tensor([0])  # of the one world
NOT_BROKEN = torch.tensor([False])
SUCCESS = "success"
TIME = "time"  # of the state
MACHINE_TIME = "total time"  # of the machine
FALL = "fall"
BROKEN = "broken"  # the simulation diverged (`Backend.advance`)


@dataclass(frozen=True)
class Visit:
    """One stay in a state."""

    name: str
    start: int  # control step
    stop: int
    cause: str  # of its end: SUCCESS, TIME, MACHINE_TIME, FALL or BROKEN
    distance: float | None  # at its end, from its goal; None for a task without a distance
    distance_unit: str


@dataclass(frozen=True)
class Playthrough:
    """One run of a state machine, from its first state to its end."""

    visits: tuple[Visit, ...]
    qpos: Tensor  # (T, 7 + J), or (T, 14 + J) with a box, after each control step
    ended: bool  # by the state `end`, not by a fall or by time

    @property
    def seconds(self) -> float:
        return len(self.qpos) / CONTROL_RATE

    @property
    def cause(self) -> str:
        """Why the run is over: the cause of the last visit's end, or MACHINE_TIME if it has a state
        that follows."""
        last = self.visits[-1].cause
        return MACHINE_TIME if last in (SUCCESS, TIME) and not self.ended else last


def play_machine(
    machine: StateMachine,
    behaviors: dict[str, Behavior],
    parent: Parent,
    simulated: SimulationConfig,
    *,
    rng: torch.Generator,
) -> Playthrough:
    """Play from the first state to `end`, a fall without `on_fall`, or the time limit.

    Takes engine and threads from `simulated`. Raises ValueError where a task needs a box and the
    machine has no `box`."""
    player = _Player(machine, behaviors, parent, simulated, rng=rng)
    visits: list[Visit] = []
    following: str | None = machine.first
    while following is not None and following != END:
        visits.append(player.visit(behaviors[following]))
        following = player.follow(visits[-1])
    return Playthrough(tuple(visits), torch.stack(player.qpos), ended=following == END)


class _Player:
    """The machine's world and its recorded poses."""

    def __init__(
        self,
        machine: StateMachine,
        behaviors: dict[str, Behavior],
        parent: Parent,
        simulated: SimulationConfig,
        *,
        rng: torch.Generator,
    ):
        scene = scene_of(behaviors)
        check_box(machine, scene)
        env = parent.simulation(1, scene, simulated, rng)
        env.reset(WORLD_IDS)
        self._machine = machine
        self._parent = parent
        self._backend: Backend = env.backend
        self._backend.place(WORLD_IDS, at_origin(env.state()))
        if self._backend.box is not None and machine.box is not None and scene.box is not None:
            stands = [*machine.box, scene.box.size[2] / 2, 1.0, *[0.0] * 9]
            self._backend.box.place(WORLD_IDS, torch.tensor([stands]))
        self.qpos: list[Tensor] = []

    def follow(self, visit: Visit) -> str | None:
        """The state after `visit`; None where none follows, or the machine's time is up."""
        state = self._machine.states[visit.name]
        follows = {SUCCESS: state.on_success, TIME: state.on_time, FALL: state.on_fall}
        following = follows.get(visit.cause)
        is_time_up = len(self.qpos) >= self._max_steps
        return None if is_time_up and following != END else following

    @property
    def _max_steps(self) -> int:
        return control_steps(self._machine.seconds)

    def visit(self, behavior: Behavior) -> Visit:
        """Decide until a transition. Success counts at the end of a decision."""
        start = len(self.qpos)
        task = behavior.task
        boxes = BoxGoals(task, self._parent.character.skeleton, self._backend)
        goal = boxes.update(behavior.goal(self._backend.state()), NOT_BROKEN)
        if behavior.planner is not None:
            behavior.planner.reset_plans(WORLD_IDS)
        stop = math.inf
        if behavior.state.seconds is not None:
            stop = start + count_control_steps(behavior.state.seconds, behavior.llc_steps)
        cause = ""
        z = np.zeros((1, self._parent.skills.latent_dim), np.float32)
        while not cause:
            since = len(self.qpos) - start
            decides = since % behavior.llc_steps == 0
            if decides and since and behavior.state.on_success and self._met(task, goal):
                cause = SUCCESS
            elif len(self.qpos) >= stop:
                cause = TIME
            elif len(self.qpos) >= self._max_steps:
                cause = MACHINE_TIME
            else:
                if decides:
                    z = behavior.decide(self._backend.state().flatten().numpy(), goal.numpy())
                broken = self._advance(z)
                goal = boxes.update(goal, NOT_BROKEN)
                if broken or self._fallen(task, boxes, goal):
                    cause = BROKEN if broken else FALL
        return Visit(
            behavior.name,
            start,
            len(self.qpos),
            cause,
            self._distance(task, goal),
            task.distance_unit,
        )

    def _advance(self, z: np.ndarray) -> bool:
        """One control step. Returns whether the world broke."""
        backend = self._backend
        targets = self._parent.skills.act(backend.state().flatten().numpy(), z)
        broken = bool(backend.advance(torch.from_numpy(targets)).any())
        state = backend.state()
        pose = [state.root_pos, state.root_rot, state.joint_pos]
        if backend.box is not None:
            pose.append(backend.box.state()[:, :7])
        self.qpos.append(torch.cat(pose, -1)[0])
        return broken

    def _fallen(self, task: Task, boxes: BoxGoals, goal: Tensor) -> bool:
        backend = self._backend
        down = touches_beyond_feet(backend.touching(), self._parent.character.skeleton)
        falls = bool(down.any()) and not task.scene().lying
        return falls or bool(boxes.illegal_contact(backend.state(), goal).any())

    def _met(self, task: Task, goal: Tensor) -> bool:
        skeleton = self._parent.character.skeleton
        return bool(task.success(skeleton, self._backend.state(), goal).any())

    def _distance(self, task: Task, goal: Tensor) -> float | None:
        distance = task.distance(self._parent.character.skeleton, self._backend.state(), goal)
        if distance is None or not distance.isfinite():  # a broken state's is not finite
            return None
        return float(distance[0])


def at_origin(state: CharacterState) -> CharacterState:
    """`state` (N, ...) turned and moved to face along x above the origin of the world."""
    back = conjugate(heading_rotation(state.root_rot))
    above_origin = state.root_pos * torch.tensor([0.0, 0.0, 1.0])
    return replace(place(state, back, torch.zeros(3)), root_pos=above_origin)
