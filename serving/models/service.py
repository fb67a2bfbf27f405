"""Service: settings, the store and its open versions. Routes get a version or a Refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from anyio.to_thread import run_sync

from serving.access.guard import Guard
from serving.models.catalog import Catalog, OpenVersion
from serving.models.graph_runner import GraphRunner
from serving.models.metrics import Metrics
from serving.models.planning import Planners
from serving.models.skills import ServedController, ServedSkill, summaries
from serving.settings import Settings
from serving.wire.problems import Refusal, from_store, invalid
from serving.wire.schemas import Summary
from skills_store.errors import StoreError, UnknownSkill, WrongKind
from skills_store.open import open_store
from skills_store.store import Store
from skills_store.version import Version

T = TypeVar("T", bound=OpenVersion)
# what a name is to a client -> kinds of its manifest
KINDS = {"skill": ("skills",), "controller": ("controller",), "model": ("skills", "controller")}
LONGEST_REFERENCE = 200  # a name and a digest have 136; longer text is refused and not quoted


@dataclass(frozen=True)
class Service:
    settings: Settings
    store: Store
    runner: GraphRunner
    metrics: Metrics
    guard: Guard
    skills: Catalog[ServedSkill]
    controllers: Catalog[ServedController]
    planners: Planners

    async def get_skill(
        self, ref: str | None, field: str | None = "skill", what: str = "skill"
    ) -> ServedSkill:
        """`what` is the kind of name that `ref` may be, one of KINDS. Raises Refusal."""
        named = self.settings.skill if ref is None else ref
        return await self._take(self.skills, named, field, what)

    async def get_default_skill(self) -> ServedSkill:
        """The default skill, for readiness: Refusal with status 503 if it cannot be opened."""
        try:
            return await self.get_skill(None, None)
        except Refusal as refusal:
            refusal.status = 503
            raise

    async def list_summaries(self, kind: str) -> list[Summary]:
        try:
            return await run_sync(lambda: list(summaries(self.store, kind)))
        except (StoreError, OSError) as error:
            raise from_store(error, None) from error

    async def get_controller(self, ref: str, field: str | None = "name") -> ServedController:
        return await self._take(self.controllers, ref, field, "controller")

    async def refresh(self) -> None:
        """Check the store and the key file once."""
        await self.refresh_keys()
        await self.refresh_versions()

    async def refresh_keys(self) -> None:
        await run_sync(self.guard.refresh)

    async def refresh_versions(self) -> None:
        await self.skills.refresh()
        await self.controllers.refresh()

    async def watch(self) -> None:
        """Refresh periodically until cancelled. A slow store does not delay the keys."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._repeat(self.refresh_keys))
            both.create_task(self._repeat(self.refresh_versions))

    async def _take(self, catalog: Catalog[T], ref: str, field: str | None, what: str) -> T:
        if item := catalog.get_open(ref):
            return item
        if len(ref) > LONGEST_REFERENCE:
            raise invalid(
                "invalid_reference",
                f"a reference has at most {LONGEST_REFERENCE} characters",
                field,
                "a shorter one",
            )
        try:
            return await catalog.take(ref)
        except UnknownSkill as error:
            exists = await self._list_names(what)
            raise from_store(UnknownSkill(error.args[0], exists, what=what), field) from error
        except (StoreError, OSError) as error:
            raise from_store(error, field) from error

    async def _list_names(self, what: str) -> list[str]:
        listings = [await self.list_summaries(kind) for kind in KINDS[what]]
        return sorted({summary.name for listing in listings for summary in listing})

    async def _repeat(self, refresh: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(self.settings.refresh)
            await refresh()


def make_service(settings: Settings) -> Service:
    """Raises StoreError, OSError or ValueError where store or key file cannot be read."""
    store = open_store(settings.store)
    metrics = Metrics()
    threads = ThreadPoolExecutor(settings.threads, "graph")
    runner = GraphRunner(threads, settings.max_waiting, settings.device, metrics.count_run)

    async def open_skill(version: Version) -> ServedSkill:
        return await run_sync(
            ServedSkill.open, store, version, runner, settings.max_rows, settings.max_frames
        )

    async def open_controller(version: Version) -> ServedController:
        if version.manifest.kind != "controller":
            raise WrongKind(version.ref, version.manifest.kind, "controller")
        parent = await run_sync(store.parent, version.manifest)
        skill = await skills.take(
            parent.pinned
        )  # all controllers of a skill and /act share a session
        return await run_sync(
            ServedController.open, store, version, skill, runner, settings.max_rows
        )

    skills = Catalog(
        store, open_skill, settings.max_memory, metrics.count_swap, pinned=settings.skill
    )
    controllers = Catalog(store, open_controller, settings.max_memory, metrics.count_swap)
    guard = Guard(settings.keys, settings.rate, share=1 / settings.workers)
    planners = Planners(store, settings.threads)
    return Service(settings, store, runner, metrics, guard, skills, controllers, planners)
