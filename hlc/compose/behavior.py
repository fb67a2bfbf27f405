"""Behavior: a machine's state with its task, its controller or planner, and its goal."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from hlc.compose.ground_frame import ground_frame, to_world
from hlc.compose.state_machine import State, StateMachine
from hlc.config import PlayConfig
from hlc.evaluate import trained_task
from hlc.parent import Parent, SimulationConfig
from hlc.planner import Planner
from hlc.rollouts import Decide
from hlc.tasks.parameters import make_task
from hlc.tasks.scene import Scene
from hlc.tasks.task import Task, check_bodies, goal_width
from pretrain.characters.state import CharacterState
from skills_store.errors import WrongKind
from skills_store.runtime.library import Controller
from skills_store.store import Store
from skills_store.version import Version


@dataclass(frozen=True)
class Behavior:
    name: str
    state: State
    task: Task
    decide: Decide
    llc_steps: int
    planner: Planner | None  # None for a controller
    version: Version | None = None  # of the controller; None where it is planned

    def goal(self, state: CharacterState) -> Tensor:
        """The goal (1, G), world frame, of a character that enters this state in `state` (1, ...).
        Zeros where the goal is the box."""
        goal = self.named_goal()
        if self.state.frame == "entry":
            goal = to_world(goal, self.task.goal_layout(), ground_frame(state))
        return goal

    def named_goal(self) -> Tensor:
        """The goal (1, G) in the file's frame; zeros where the goal is the box."""
        goal = torch.zeros(1, goal_width(self.task))
        for part in self.task.goal_layout():
            if self.state.goal is not None:
                goal[0, part.start : part.stop] = torch.tensor(self.state.goal[part.name])
        return goal


def make_behaviors(
    machine: StateMachine, parent: Parent, store: Store, simulated: SimulationConfig, rng: Generator
) -> dict[str, Behavior]:
    """One for each state of `machine`. Raises StoreError, and ValueError for a goal or a parameter
    that its task does not have, and for a controller of another library."""
    behaviors: dict[str, Behavior] = {}
    for name, state in machine.states.items():
        if state.controller is not None:
            behaviors[name] = _controlled(name, state, parent, store)
            continue
        task = _planned_task(name, state, parent)
        worlds = machine.plan.candidates
        backend = parent.backend(worlds, task.scene(), simulated.engine, simulated.threads)
        planner = Planner(parent, task, backend, machine.plan, rng=rng)
        behaviors[name] = Behavior(name, state, task, planner, PlayConfig().llc_steps, planner)
    return behaviors


def _planned_task(name: str, state: State, parent: Parent) -> Task:
    assert state.task is not None
    task = make_task(name, state.task, state.parameters)
    _check_goal(name, state, task, parent)
    return task


def _controlled(name: str, state: State, parent: Parent, store: Store) -> Behavior:
    assert state.controller is not None
    version = store.resolve(state.controller)
    if version.manifest.kind != "controller":
        raise WrongKind(version.ref, version.manifest.kind, "controller")
    trained_on = store.parent(version.manifest)
    if trained_on.digest != parent.version.digest:
        machine_library = f"{parent.version.ref} ({parent.version.digest})"
        trained_library = f"{trained_on.ref} ({trained_on.digest})"
        raise ValueError(
            f"{name}: {version.ref} was trained on {trained_library}, "
            f"the machine's is {machine_library}"
        )
    task = trained_task(name, version, state.parameters)
    _check_goal(name, state, task, parent)
    controller = Controller.open(store, version, library=parent.skills)
    return Behavior(name, state, task, controller.decide, controller.llc_steps, None, version)


def _check_goal(name: str, state: State, task: Task, parent: Parent) -> None:
    check_bodies(task, parent.character.skeleton)
    expected = {part.name: part.stop - part.start for part in task.goal_layout()}
    if task.scene().box is not None:
        if state.goal is not None:
            raise ValueError(f"{name}: the goal is the box, expected none")
        if state.frame != "world":
            raise ValueError(
                f"{name}: frame is {state.frame!r}, expected 'world': the goal is the box"
            )
        return
    widths = {part: len(values) for part, values in (state.goal or {}).items()}
    if widths != expected:
        raise ValueError(f"{name}: the goal has {widths}, expected numbers of {expected}")


def scene_of(behaviors: dict[str, Behavior]) -> Scene:
    """The scene for all `behaviors`."""
    boxes = [x.task.scene().box for x in behaviors.values()]
    return Scene(box=next((box for box in boxes if box is not None), None))


def check_box(machine: StateMachine, scene: Scene) -> None:
    """Raises ValueError where `machine` has a place for a box and `scene` has none, or the other
    way round."""
    if scene.box is not None and machine.box is None:
        raise ValueError("a task needs a box, expected `box: [x, y]` in the state machine")
    if scene.box is None and machine.box is not None:
        raise ValueError(f"box is {list(machine.box)}, expected none: no state's task has a box")
