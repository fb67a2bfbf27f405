"""Session: one character's control loop over a WebSocket. The server keeps z.

The first message is JSON text: {"skill": "humanoid@prod", "z": "walk"} or
{"controller": "reach"}, optionally with "hold" (control steps for which a controller's decision is
held), "strict" and "seed". The reply names the selected version. Every message with a state is then
answered with targets:

    text     {"state": ..., "goal": ..., "z": ..., "blend": 15}
             goal and z stay until they are sent again; blend goes with z
    binary   float32 little-endian: state, or state then goal (of a controller),
             or state then z (of a skill)

"blend" is the number of steps in which z moves along the sphere to the new z. A session keeps the
version that it was opened with. A skill's text replies have "z_normalised" of the z given last. An
invalid message is answered with a Problem and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field

from serving.api import sphere
from serving.api.act import add_noise
from serving.api.latents import read_latent, refuse_opposite
from serving.models.resting_pose import make_resting_row
from serving.models.service import Service
from serving.models.skills import ServedController, ServedSkill
from serving.wire import rows
from serving.wire.problems import invalid
from serving.wire.raw import FLOAT32
from serving.wire.rows import InputSpec
from serving.wire.schemas import WireMessage, validate


class Opening(WireMessage):
    skill: str | None = Field(
        default=None, description="As in /act; not with a controller, which has its own"
    )
    controller: str | None = Field(default=None, description="As in /controllers")
    z: Any = Field(default=None, description="[D] or a clip's name; needed for a skill")
    hold: int | None = Field(
        default=None, ge=1, le=10_000, strict=True, description="Steps per decision"
    )
    strict: bool | None = Field(default=False, strict=True, description="As in /act")
    seed: int | None = Field(
        default=None, ge=0, le=2**62, strict=True, description="As in /act, for the first step"
    )


class Step(WireMessage):
    state: Any = Field(
        default=None, description="[S] or named parts; without it nothing is computed"
    )
    goal: Any = Field(default=None, description="[G] or named parts, of a controller")
    z: Any = Field(default=None, description="[D] or a clip's name, of a skill")
    blend: int | None = Field(
        default=0,
        ge=0,
        le=10_000,
        strict=True,
        description="Steps in which to go to z",
    )


@dataclass
class Session:
    skill: ServedSkill
    controller: ServedController | None
    hold: int
    strict: bool
    seed: int | None
    z: np.ndarray | None = None  # (D,) the current skill
    goal: np.ndarray | None = None  # (1, G)
    z_normalised: bool = False  # the z given last was not on the sphere
    path: list[np.ndarray] = field(default_factory=list)  # z of the steps to come, last first
    steps: int = 0

    def describe(self) -> dict[str, Any]:
        """The reply to the first message: the selected version and its input widths."""
        description = {"skill": self.skill.stamp, "state_dim": self.skill.specs["state"].width}
        if self.controller is None:
            return description | {"z_normalised": self.z_normalised}
        return description | {
            "controller": self.controller.stamp,
            "goal_dim": self._goal.width,
            "hold": self.hold,
        }

    async def step(self, message: Step) -> dict[str, Any]:
        """One control step. The message's changes take effect in this step; a refused message
        changes nothing."""
        state = (
            rows.read(message.state, self.skill.specs["state"].row).array
            if message.state is not None
            else None
        )
        goal = self.goal
        if message.goal is not None:
            goal = rows.read(message.goal, self._goal).array
        path, moved = self._plan(message)
        if state is not None and self.controller is not None and goal is None:
            raise invalid(
                "missing_field", "this session has no goal yet", "goal", self._goal.expected
            )
        if state is None:
            if self.controller is not None and goal is not None:
                self.controller.check_goal(goal, None)
            self.goal = goal
            self.path = path
            self.z_normalised = moved
            return self.describe()
        z, goal = await self._decide(state, goal, path)
        targets = await self.skill.policy_batcher.submit(state, z[None])
        if self.seed is not None:
            targets = add_noise(self.skill, targets, self.seed + self.steps)
        self.z = z
        self.z_normalised = moved
        self.goal = goal
        self.path = path[:-1]
        self.steps = self.steps + 1
        answer = {"targets": targets[0], "z": z}
        if self.controller is None:
            answer["z_normalised"] = moved
        if self.goal is not None and self.controller is not None and self.controller.memory_batcher:
            answer["goal"] = self.goal[0]
        return answer

    def read(self, data: bytes) -> Step:
        """Parse a binary message: a state, then a goal or z if the length allows one."""
        if len(data) % 4:
            raise invalid(
                "not_a_frame",
                f"{len(data)} bytes are no whole float32 numbers",
                None,
                self._lengths(),
            )
        numbers = np.frombuffer(data, FLOAT32)
        width = self.skill.specs["state"].width
        rest = len(numbers) - width
        if rest == 0:
            return Step(state=numbers)
        if self.controller is not None and rest == self._goal.width:
            return Step(state=numbers[:width], goal=numbers[width:])
        if self.controller is None and rest == self.skill.specs["z"].width:
            return Step(state=numbers[:width], z=numbers[width:])
        raise invalid("not_a_frame", f"a frame of {len(numbers)} numbers", None, self._lengths())

    async def _decide(
        self, state: np.ndarray, goal: np.ndarray | None, path: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """z (D,) of this step, and the goal after it: for a state machine, its next memory."""
        if self.controller is None:
            z = path[-1] if path else self.z
            assert z is not None  # a skill's session is opened with a z
            return z, None
        if self.z is None or self.steps % self.hold == 0:
            assert goal is not None  # `step` refuses a state before the first goal
            z, next_goal = await self.controller.decide(state, goal)
            return z[0], goal if self.controller.memory_batcher is None else next_goal
        if goal is not self.goal and goal is not None:  # no decision checks it in this step
            self.controller.check_goal(goal, state)
        return self.z, goal

    def _plan(self, message: Step) -> tuple[list[np.ndarray], bool]:
        """z of the steps to come, last first, and whether the z given last was normalised."""
        if message.z is None and message.blend:
            raise invalid("unknown_field", "blend goes to a z, and there is none", "blend", "a z")
        if message.z is None:
            return self.path, self.z_normalised
        if self.controller is not None:
            raise invalid(
                "unknown_field", "this session's z is chosen by its controller", "z", "a goal"
            )
        new, moved = read_latent(message.z, "z", self.skill, self.strict)
        if self.z is None or not message.blend:
            return [new], moved
        refuse_opposite(self.z, new, "z")
        return list(sphere.path(np.array([self.z, new]), message.blend + 1)[:0:-1]), moved

    @property
    def _goal(self) -> InputSpec:
        if self.controller is None:
            raise invalid(
                "unknown_field",
                "this session has a skill, and no controller that takes a goal",
                "goal",
                "z",
            )
        return self.controller.specs["goal"].row

    def _lengths(self) -> str:
        state = self.skill.specs["state"].width
        second = (
            ("goal", self._goal) if self.controller is not None else ("z", self.skill.specs["z"])
        )
        return f"{state} float32 (state), or {state + second[1].width} (state, {second[0]})"


async def open_session(service: Service, fields: object) -> Session:
    """Raises Refusal."""
    opening = validate(Opening, fields)
    strict = bool(opening.strict)
    if opening.controller is not None:
        if opening.skill is not None or opening.z is not None:
            name = "skill" if opening.skill is not None else "z"
            raise invalid(
                "unknown_field",
                f"a controller has its own {name}",
                name,
                f"controller without {name}",
            )
        if strict:
            message = "strict is about a z, which the controller chooses"
            raise invalid("unknown_field", message, "strict", "controller without strict")
        controller = await service.get_controller(opening.controller, "controller")
        hold = opening.hold or controller.controller.llc_steps
        session = Session(controller.skill, controller, hold, strict, opening.seed)
        if controller.memory_batcher is not None:  # a state machine starts with an empty memory
            session.goal = make_resting_row(controller.specs["goal"].tensor)
        return session
    skill = await service.get_skill(opening.skill)
    if opening.z is None:
        raise invalid("missing_field", "z is missing", "z", skill.specs["z"].row.expected)
    if opening.hold is not None:
        raise invalid(
            "unknown_field",
            "hold is of controllers: a skill's z stays until another is given",
            "hold",
        )
    session = Session(skill, None, 1, strict, opening.seed)
    session.z, session.z_normalised = read_latent(opening.z, "z", skill, strict)
    session.path = [session.z]
    return session
