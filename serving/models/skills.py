"""Served versions: a skill library or a controller, open and warm, with the data that routes need.
Independent of HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from serving.models.batcher import Batcher
from serving.models.goal_limits import (
    apply_limits,
    find_root,
    refuse_fractions,
    refuse_no_direction,
)
from serving.models.graph_runner import GraphRunner
from serving.models.resting_pose import example_latent, make_resting_row, state_at_rest
from serving.wire.rows import InputSpec
from serving.wire.schemas import ControllerDetail, ServedVersion, SkillDetail, Summary
from skills_store.errors import StoreError
from skills_store.manifest import GoalLimit, Manifest
from skills_store.runtime.library import Controller, SkillLibrary
from skills_store.store import Store
from skills_store.version import Version


@dataclass(frozen=True)
class ServedSkill:
    library: SkillLibrary
    stamp: dict[str, str | int]  # in every reply: the version that computed it
    specs: dict[str, InputSpec]  # of state, z and frames
    policy_batcher: Batcher  # state, z -> targets

    @staticmethod
    def open(
        store: Store, version: Version, runner: GraphRunner, max_rows: int, max_frames: int
    ) -> ServedSkill:
        """Verified and warm. Raises StoreError for a version that cannot run."""
        library = SkillLibrary.open(store, version, device=runner.device)
        inputs = {tensor.name: tensor for tensor in library.policy.graph.inputs}
        specs = {
            "state": InputSpec("state", inputs["state"], max_rows),
            "z": InputSpec("z", inputs["z"], max_rows, named=True),
            "frames": InputSpec("frames", inputs["state"], max_frames, "batch"),
        }
        state = state_at_rest(version.manifest)
        z = example_latent(version.manifest)
        window = make_resting_row(library.encoder.graph.input("window"))
        library.encode(np.repeat(window[:, None], library.window_length, axis=1))
        return ServedSkill(
            library, stamp(version), specs, runner.make_batcher(version.ref, library.act, state, z)
        )

    @property
    def version(self) -> Version:
        return self.library.version

    @property
    def manifest(self) -> Manifest:
        return self.version.manifest

    @property
    def window(self) -> int:
        return self.library.window_length

    @property
    def nbytes(self) -> int:
        return _nbytes(self.manifest)

    @cached_property
    def sigma(self) -> np.ndarray | None:
        """(J,) rad: the policy's noise std when training ended; None if the manifest has none."""
        action = self.manifest.action
        if action is None or action.std is None:
            return None
        return np.array(action.std, np.float32)


@dataclass(frozen=True)
class ServedController:
    controller: Controller
    stamp: dict[str, str | int]
    specs: dict[str, InputSpec]  # of state and goal
    controller_batcher: Batcher  # state, goal -> z
    memory_batcher: Batcher | None  # of a state machine: state, goal -> next goal
    skill: ServedSkill  # the exact version that the controller was trained on

    @staticmethod
    def open(
        store: Store, version: Version, skill: ServedSkill, runner: GraphRunner, max_rows: int
    ) -> ServedController:
        controller = Controller.open(store, version, library=skill.library, device=runner.device)
        inputs = {tensor.name: tensor for tensor in controller.net.graph.inputs}
        specs = {name: InputSpec(name, inputs[name], max_rows) for name in ("state", "goal")}
        row = state_at_rest(skill.manifest)
        goal = make_resting_row(inputs["goal"])
        decide = runner.make_batcher(version.ref, controller.decide, row, goal)
        next_goal = None
        if controller.memory is not None:
            next_goal = runner.make_batcher(version.ref, controller.next_goal, row, goal)
        return ServedController(controller, stamp(version), specs, decide, next_goal, skill)

    async def decide(self, state: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z (B, D) for states (B, S) and goals (B, G), and the goals (B, G) that z was computed
        from. Raises Refusal for a goal out of range."""
        if self.goal_limits:
            root = state[:, self._root]
            goal = apply_limits(self.goal_limits, self.specs["goal"].tensor, goal, root)
        if self.memory_batcher is not None:
            refuse_fractions(self.specs["goal"].tensor, goal)
            goal = await self.memory_batcher.submit(state, goal)
        return await self.choose(state, goal), goal

    async def choose(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """z (B, D) for states (B, S) and goals (B, G), by the controller's graph alone. Raises
        Refusal for a goal that has none."""
        z = await self.controller_batcher.submit(state, goal)
        refuse_no_direction(z)
        return z

    def check_goal(self, goal: np.ndarray, state: np.ndarray | None) -> None:
        """Raises Refusal for goals (B, G) out of range for characters in states (B, S). Without a
        state, distances from the character are not checked."""
        limits = [x for x in self.goal_limits if state is not None or x.quantity != "distance"]
        root = np.zeros((len(goal), 3)) if state is None else state[:, self._root]
        apply_limits(limits, self.specs["goal"].tensor, goal, root)
        if self.memory_batcher is not None:
            refuse_fractions(self.specs["goal"].tensor, goal)

    @cached_property
    def goal_limits(self) -> tuple[GoalLimit, ...]:
        task = self.version.manifest.task
        assert task is not None  # the manifest's own rule for a controller
        return task.goal_limits

    @cached_property
    def _root(self) -> slice:
        return find_root(self.specs["state"].tensor)

    @property
    def version(self) -> Version:
        return self.controller.version

    @property
    def nbytes(self) -> int:
        """Of its own graphs, and of its library's, which it keeps open."""
        return _nbytes(self.version.manifest) + self.skill.nbytes


def _nbytes(manifest: Manifest) -> int:
    return sum(manifest.files[graph.file].size for graph in manifest.graphs.values())


def stamp(version: Version) -> dict[str, str | int]:
    return {"name": version.name, "version": version.number, "digest": version.digest}


def summaries(store: Store, kind: str) -> Iterable[Summary]:
    """The store's names with versions of one kind; damaged versions are in `faults`."""
    for name in store.names():
        try:
            (rows, faults) = store.summaries(name)
            aliases = store.aliases(name)
        except (StoreError, OSError):  # deleted or made unreadable between two reads
            continue
        kinds = {row.kind for row in rows}
        # A name whose every version is damaged has no known kind: it is listed with the skills, not
        # hidden.
        if kind in kinds or (not kinds and kind == "skills"):
            yield Summary(
                name=name,
                versions=[row.number for row in rows if row.kind == kind],
                aliases=aliases,
                faults=[fault.message for fault in faults],
            )


def skill_detail(served: ServedSkill) -> SkillDetail:
    version = served.version
    manifest = served.manifest
    body = served.manifest.character
    return SkillDetail(
        name=version.name,
        version=version.number,
        digest=version.digest,
        created=version.created,
        licence=manifest.licence,
        character=body.name,
        joints=list(body.joints),
        kp=list(body.kp),
        kd=list(body.kd),
        damping=list(body.damping),
        torque_limit=list(body.torque_limit),
        control_dt=body.control_dt,
        mjcf=body.mjcf,
        state=list(served.specs["state"].tensor.slices),
        state_dim=served.specs["state"].width,
        latent_dim=manifest.latent.dim,
        window=served.window,
        clips={name: list(z) for name, z in manifest.latent.clips.items()},
        card=manifest.card,
    )


def controller_detail(served: ServedController) -> ControllerDetail:
    version = served.version
    task = served.version.manifest.task
    assert task is not None  # the manifest's own rule for a controller
    return ControllerDetail(
        name=version.name,
        version=version.number,
        digest=version.digest,
        created=version.created,
        licence=version.manifest.licence,
        task=task.name,
        llc_steps=task.llc_steps,
        state=list(served.specs["state"].tensor.slices),
        goal_dim=served.specs["goal"].width,
        goal=list(served.specs["goal"].tensor.slices),
        goal_limits=list(task.goal_limits),
        skill=ServedVersion.model_validate(served.skill.stamp),
        card=version.manifest.card,
    )
