"""StateMachine: reads and checks a state machine file; simulates nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, FiniteFloat, ValidationError, model_validator

from hlc.config import PlanConfig
from hlc.tasks import TASKS
from pretrain.overrides import ConfigError, describe_error
from pretrain.rl.field_types import Frozen, Seconds

END = "end"  # the state that ends the machine
MAX_BYTES = 2**20  # of a file


class State(Frozen):
    """What is done until a transition. Without `on_fall` a fall ends the machine."""

    controller: str | None = Field(default=None, description="Reference of a published controller")
    task: str | None = Field(
        default=None, description=f"Instead: a task that is planned, of {', '.join(TASKS)}"
    )
    parameters: dict[str, Any] = Field(
        default={}, description="Of the task, in place of its defaults or the controller's own"
    )
    goal: dict[str, tuple[FiniteFloat, ...]] | None = Field(
        default=None, description="Its named parts; none for a task whose goal is the box"
    )
    frame: Literal["world", "entry"] = Field(
        default="world",
        description="Of the goal. The origin of the world is where the machine begins, x ahead; "
        "that of the entry is on the ground below the root when the state is entered",
    )
    on_success: str | None = Field(default=None, description="The state that follows a success")
    seconds: Seconds | None = Field(default=None, description="s; longest time in this state")
    on_time: str | None = Field(default=None, description="The state that follows that time")
    on_fall: str | None = Field(default=None, description="The state that follows a fall")

    @model_validator(mode="after")
    def _check(self) -> State:
        if (self.controller is None) == (self.task is None):
            raise ValueError("expected either controller or task")
        if (self.seconds is None) != (self.on_time is None):
            raise ValueError("seconds and on_time go together")
        if self.task is not None and self.task not in TASKS:
            raise ValueError(f"no task {self.task!r}; there are: {', '.join(TASKS)}")
        return self

    def transitions(self) -> tuple[str, ...]:
        """The states that may follow."""
        named = (self.on_success, self.on_time, self.on_fall)
        return tuple(name for name in named if name is not None)


class StateMachine(Frozen):
    """States by name, of which the first one begins; `end` ends."""

    skill: str = Field(
        default="humanoid@latest", description="Library; controllers must be trained on it"
    )
    states: dict[str, State] = Field(min_length=1)
    box: tuple[FiniteFloat, FiniteFloat] | None = Field(
        default=None, description="m; where the box stands when the machine begins"
    )
    seconds: Seconds = Field(default=60.0, description="s; longest time of the machine")
    plan: PlanConfig = Field(default=PlanConfig(), description="Planning, in states with a task")

    @model_validator(mode="after")
    def _check(self) -> StateMachine:
        if END in self.states:
            raise ValueError(f"{END!r} ends the machine, and can be no state")
        for name, state in self.states.items():
            for following in state.transitions():
                if following != END and following not in self.states:
                    existing = ", ".join([*self.states, END])
                    raise ValueError(f"{name}: no state {following!r}; there are: {existing}")
        return self

    @property
    def first(self) -> str:
        return next(iter(self.states))


def load_machine(path: Path) -> StateMachine:
    """Raises ConfigError for an invalid file, OSError for an unreadable one."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path} has more than {MAX_BYTES} bytes, expected a state machine")
    try:
        return StateMachine.model_validate(yaml.safe_load(data))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        reasons = "; ".join(map(describe_error, error.errors()))
        raise ConfigError(f"{path}: {reasons}") from error
