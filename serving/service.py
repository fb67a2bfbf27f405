"""Service: settings, the store, and what is open of it. Routes ask it for versions; it gives one or refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from anyio.to_thread import run_sync

from serving.loaded import Loaded
from serving.problems import Refusal, from_store, invalid
from serving.schemas import Summary
from serving.settings import Settings
from serving.skills import ServedController, ServedSkill, summaries
from skills_store.errors import StoreError
from skills_store.opening import open_store
from skills_store.store import Store

T = TypeVar("T")
LONGEST_REFERENCE = 200  # a name and a digest are 136; a longer text is refused without being repeated
INLINE_ROWS = 32  # more rows than these hold up the event loop for longer than a thread costs


@dataclass(frozen=True)
class Service:
    settings: Settings
    store: Store
    skills: Loaded[ServedSkill]
    controllers: Loaded[ServedController]

    async def skill(self, ref: str | None, field: str | None = "skill") -> ServedSkill:
        return await _take(self.skills, ref or self.settings.skill, field)

    async def default(self) -> ServedSkill:
        """The skill that readiness is about: without it, whatever the reason, the service is not ready."""
        try:
            return await self.skill(None, None)
        except Refusal as refusal:
            refusal.status = 503
            raise

    async def listed(self, kind: str) -> list[Summary]:
        try:
            return await run_sync(lambda: list(summaries(self.store, kind)))
        except (StoreError, OSError) as error:
            raise from_store(error, None) from error

    async def controller(self, ref: str) -> ServedController:
        return await _take(self.controllers, ref, "name")


def make_service(settings: Settings) -> Service:
    store = open_store(settings.store)
    skills = Loaded(store, ServedSkill.open, settings.refresh, settings.max_loaded)
    controllers = Loaded(store, ServedController.open, settings.refresh, settings.max_loaded)
    return Service(settings, store, skills, controllers)


async def run(graph: Callable[..., np.ndarray], *inputs: np.ndarray) -> np.ndarray:
    """A few rows here and now, many in a thread: other characters' 0.1 ms must not wait for them."""
    output = graph(*inputs) if len(inputs[0]) <= INLINE_ROWS else await run_sync(graph, *inputs)
    return checked(output)


def checked(output: np.ndarray) -> np.ndarray:
    """Finite numbers can be so far out that a graph overflows; no client is to steer a body by what comes of it."""
    if not np.isfinite(output).all():
        raise invalid("not_finite", "the skill's answer overflows: some input is far out of any character's reach")
    return output


async def _take(loaded: Loaded[T], ref: str, field: str | None) -> T:
    if len(ref) > LONGEST_REFERENCE:
        raise invalid(
            "invalid_reference", f"a reference has at most {LONGEST_REFERENCE} characters", field, "a shorter one"
        )
    try:
        return await loaded.take(ref)
    except (StoreError, OSError) as error:
        raise from_store(error, field) from error
