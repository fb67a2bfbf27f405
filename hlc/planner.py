"""Planner: chooses skills by simulating them, without training, for any `Task`.

Each decision tries K sequences of skills per character in copies of its state, under the published
policy, and takes the first skill of the best one."""

from __future__ import annotations

import numpy as np
import torch
from torch import Generator, Tensor

from hlc.box_goals import BoxGoals
from hlc.config import PlanConfig
from hlc.parent import Parent
from hlc.task_env import on_sphere
from hlc.tasks.task import Task, check_bodies, checked_reward
from pretrain.characters.state import unflatten
from pretrain.sim.backend import Backend
from pretrain.sim.ground import touches_beyond_feet
from skills_store.runtime.onnx_session import Array

OWN_SHARE = 2 / 3  # largest share of candidates that are clips' latents


class Planner:
    """A `Decide` for W characters: states (W, S) and goals (W, G) -> z (W, D), unit rows.

    Candidates are the last plan, the clips' latents and sequences drawn from the sphere; further
    iterations draw around the best ones. (The cross-entropy method, Rubinstein 1999, over skills in
    place of actions.) Each call starts from the last plans: `reset_plans` drops those of reset
    characters, `set_plans` sets them."""

    def __init__(
        self, parent: Parent, task: Task, backend: Backend, cfg: PlanConfig, *, rng: Generator
    ):
        """`backend` simulates W * K worlds of the parent's character, K = cfg.candidates."""
        skeleton = parent.character.skeleton
        check_bodies(task, skeleton)
        if backend.num_envs % cfg.candidates:
            raise ValueError(
                f"plan.candidates {cfg.candidates} does not divide the {backend.num_envs} worlds"
            )
        self._parent = parent
        self._skeleton = skeleton
        self._task = task
        self._falls_end = not task.scene().lying
        self._boxes = BoxGoals(task, skeleton, backend)
        self._backend = backend
        self._cfg = cfg
        self._rng = rng
        clip_latents = list(parent.version.manifest.latent.clips.values())
        dim = parent.skills.latent_dim
        self._clip_latents = torch.tensor(np.array(clip_latents, np.float32).reshape(-1, dim))
        self.num_envs = backend.num_envs // cfg.candidates
        # best sequences so far, (W, segments, D)
        self._last = self._draw(self.num_envs)

    def __call__(self, state: Array, goal: Array) -> Array:
        """Raises ValueError where `state` has other than W rows."""
        return self.plan(state, goal)[0]

    def plan(self, state: Array, goal: Array) -> tuple[Array, Tensor]:
        """z (W, D), and the values (W,) of the sequences that it begins (`_simulate`). Raises
        ValueError as `__call__`."""
        if len(state) != self.num_envs:
            raise ValueError(f"state has {len(state)} rows, expected {self.num_envs}")
        start = torch.from_numpy(np.array(state))
        goals = torch.from_numpy(np.array(goal)).repeat_interleave(self._cfg.candidates, 0)
        plans = self._propose()
        values = self._simulate(start, goals, plans)
        best = self._choose(plans, values)
        for _ in range(1, self._cfg.iterations):
            plans = self._refit(plans, values)
            values = self._simulate(start, goals, plans)
            best = self._choose(plans, values)
        return self._last[:, 0].numpy().copy(), best  # `reset_plans` overwrites the last plans

    def reset_plans(self, ids: Tensor) -> None:
        """Replace the last plans of characters `ids` (n,) by draws from the sphere."""
        self._last[ids] = self._draw(len(ids))

    def set_plans(self, z: Tensor) -> None:
        """Set the last plans to z (W, D), each held for the whole horizon."""
        self._last = on_sphere(z)[:, None].expand(-1, self._cfg.segments, -1).clone()

    def _draw(self, *shape: int) -> Tensor:
        """Sequences uniform on the sphere, (*shape, segments, D)."""
        width = (self._cfg.segments, self._clip_latents.shape[1])
        return on_sphere(torch.randn(*shape, *width, generator=self._rng))

    def _propose(self) -> Tensor:
        """Candidates (W, K, segments, D): the last plan first, clips' latents last."""
        plans = self._draw(self.num_envs, self._cfg.candidates)
        plans[:, 0] = self._last
        most = min(len(self._clip_latents), int(OWN_SHARE * self._cfg.candidates))
        if most:
            chosen = torch.randperm(len(self._clip_latents), generator=self._rng)[:most]
            plans[:, -most:] = self._clip_latents[chosen][:, None]
        return plans

    def _refit(self, plans: Tensor, values: Tensor) -> Tensor:
        """Candidates (W, K, segments, D) around each character's elites; its best comes first."""
        elites = self._cfg.elites
        best = values.topk(elites, 1).indices[..., None, None].expand(-1, -1, *plans.shape[2:])
        elite_plans = plans.gather(1, best)
        std = elite_plans.std(1, correction=0, keepdim=True)
        noise = torch.randn(plans.shape, generator=self._rng)
        candidates = on_sphere(elite_plans.mean(1, keepdim=True) + std * noise)
        candidates[:, 0] = self._last
        return candidates

    def _choose(self, plans: Tensor, values: Tensor) -> Tensor:
        """Keep each character's best sequence; its value, (W,)."""
        best, chosen = values.max(1)
        self._last = plans[torch.arange(self.num_envs), chosen].clone()
        return best

    def _simulate(self, start: Tensor, goals: Tensor, plans: Tensor) -> Tensor:
        """Sum of the rewards over the horizon plus the gain in potential, less the cost of a fall.
        After a fall, rewards and gain are 0. (W, S), (W * K, G), (W, K, segments, D) -> (W, K)."""
        cfg = self._cfg
        backend = self._backend
        worlds = torch.arange(backend.num_envs)
        z = plans.flatten(0, 1).numpy()
        backend.place(worlds, unflatten(start.repeat_interleave(cfg.candidates, 0)))
        self._boxes.place(worlds, goals)
        before = self._task.potential(self._skeleton, backend.state(), goals)
        up = torch.ones(len(worlds), dtype=torch.bool)
        total = torch.zeros(len(worlds))
        for step in range(cfg.horizon):
            segment = step * cfg.segments // cfg.horizon
            state = backend.state().flatten().numpy()
            targets = self._parent.skills.act(state, z[:, segment])
            broken = backend.advance(torch.from_numpy(targets))
            if broken.any():  # a broken world's state would give NaN
                ids = broken.nonzero()[:, 0]
                backend.place(ids, unflatten(start[ids // cfg.candidates]))
            goals = self._boxes.update(goals, broken)
            up = up & ~broken & ~self._fallen(goals)
            reward = checked_reward(self._task, self._skeleton, backend.state(), goals)
            total += up * reward
        potential = self._task.potential(self._skeleton, backend.state(), goals)
        if potential is not None and before is not None:
            total += up * cfg.progress_weight * (potential - before)
        return (total - cfg.fall_cost * ~up).view(self.num_envs, cfg.candidates)

    def _fallen(self, goals: Tensor) -> Tensor:
        """Worlds whose episode would end, (W * K,) bool."""
        backend = self._backend
        down = touches_beyond_feet(backend.touching(), self._skeleton)
        return (down & self._falls_end) | self._boxes.illegal_contact(backend.state(), goals)
