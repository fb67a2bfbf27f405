"""SinglePlanner: plans for one character and keeps no state between calls, so any process may plan
the next decision. POST /plan of the service uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator

from hlc.config import PlayConfig
from hlc.parent import Parent, open_parent
from hlc.planner import Planner
from hlc.tasks import TASKS
from hlc.tasks.scene import Scene
from hlc.tasks.task import Task, check_bodies
from pretrain.characters.box import Box
from pretrain.sim.backend import Backend
from skills_store.runtime.onnx_session import Array
from skills_store.store import Store


@dataclass(frozen=True)
class PlanResult:
    """The best of the candidates."""

    z: Array  # (D,), unit
    predicted_return: float  # of that skill over the horizon, see `Planner.plan`


class SinglePlanner:
    """Caches a simulation of `cfg.plan.candidates` worlds per scene. Not thread-safe."""

    def __init__(self, parent: Parent, cfg: PlayConfig):
        self._parent = parent
        self._cfg = cfg
        self._backends: dict[Box | None, Backend] = {}
        self.horizon = cfg.plan.horizon  # control steps
        self.llc_steps = cfg.llc_steps

    @staticmethod
    def open(store: Store, ref: str, threads: int) -> SinglePlanner:
        """For the library `ref`, with the defaults of `hlc.plan`. Raises as `open_parent`."""
        return SinglePlanner(open_parent(store, ref), PlayConfig(threads=threads))

    @staticmethod
    def list_parameters(task: str) -> tuple[str, ...]:
        """Names of the parameters of a task in TASKS."""
        return tuple(TASKS[task].model_fields)

    def make_task(self, name: str, parameters: dict[str, Any]) -> Task:
        """The task called `name`, with `parameters` in place of its defaults. Raises KeyError for
        an unknown name, pydantic's ValidationError for an invalid parameter, and ValueError for a
        body that the character lacks."""
        if name not in TASKS:
            raise KeyError(", ".join(TASKS))
        task = TASKS[name].model_validate(parameters)
        check_bodies(task, self._parent.character.skeleton)
        return task

    def plan(
        self, task: Task, state: Array, goal: Array, *, seed: int, last_z: Array | None = None
    ) -> PlanResult:
        """The best of the candidates for `state` (S,) and `goal` (G,), drawn with `seed`; `last_z`
        (D,) is one of them.

        Raises ValueError where a reward is not finite because the state cannot be simulated."""
        rng = Generator().manual_seed(seed)
        backend = self._backend(task.scene())
        planner = Planner(self._parent, task, backend, self._cfg.plan, rng=rng)
        if last_z is not None:
            planner.set_plans(torch.from_numpy(np.array(last_z))[None])
        z, value = planner.plan(state[None], goal[None])
        return PlanResult(z[0], float(value[0]))

    def _backend(self, scene: Scene) -> Backend:
        if scene.box not in self._backends:
            cfg = self._cfg
            worlds = cfg.plan.candidates
            backend = self._parent.backend(worlds, scene, cfg.engine, cfg.threads)
            self._backends[scene.box] = backend
        return self._backends[scene.box]
