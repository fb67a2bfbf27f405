"""The models of /v2: a graph of a version, found by its name, with the checks of its inputs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from serving.models.service import Service
from serving.models.skills import ServedController, ServedSkill
from serving.wire import rows
from serving.wire.problems import Refusal, invalid, quoted
from skills_store.graph import Graph
from skills_store.version import Version


@dataclass(frozen=True)
class Outcome:
    """What a graph returned."""

    output: np.ndarray
    z_normalised: bool = False  # some z was not on the sphere


@dataclass(frozen=True)
class Model:
    """A graph that can be run."""

    name: str
    version: Version
    graph: Graph
    run: Callable[[dict[str, np.ndarray]], Awaitable[Outcome]]


async def find_model(service: Service, model: str, version: str) -> Model:
    name, dot, graph = model.partition(".")
    if not name or (dot and not graph):
        message = f"no model {quoted(model)}"
        raise Refusal(404, "unknown_model", message, "model", "NAME or NAME.GRAPH")
    ref = f"{name}@{version}" if version else _default(service, name)
    if controller := service.controllers.get_open(ref):
        return _controller(model, graph or "controller", controller)
    try:
        served = await service.get_skill(ref, "model", "model")
    except Refusal as refusal:
        if refusal.problem.code != "wrong_kind":
            raise
        return _controller(model, graph or "controller", await service.get_controller(ref))
    return _skill(service, model, graph or "policy", served)


def _default(service: Service, name: str) -> str:
    """The service's default skill if it has that name, else the name."""
    return service.settings.skill if service.settings.skill.partition("@")[0] == name else name


def _skill(service: Service, model: str, graph: str, served: ServedSkill) -> Model:
    graphs = served.manifest.graphs
    library = served.library
    if graph not in graphs:
        raise _unknown(model, served.version, graphs)

    async def policy(inputs: dict[str, np.ndarray]) -> Outcome:
        state = rows.read(inputs["state"], served.specs["state"].batch)
        z = rows.read(inputs["z"], served.specs["z"].batch)
        z = rows.broadcast(z, state, ("z", "state"))
        on_sphere, moved = rows.project_to_sphere(z, "z", strict=False)
        return Outcome(await served.policy_batcher.submit(state.array, on_sphere), moved)

    async def run_windows(inputs: dict[str, np.ndarray]) -> Outcome:
        windows = _windows(inputs["window"], graphs[graph], service.settings.max_rows)
        run = library.encode if graph == "encoder" else library.style
        return Outcome(rows.require_finite(await service.runner.run_on_thread(run, windows)))

    return Model(model, served.version, graphs[graph], policy if graph == "policy" else run_windows)


def _controller(model: str, graph: str, served: ServedController) -> Model:
    graphs = served.version.manifest.graphs
    if graph not in graphs:
        raise _unknown(model, served.version, graphs)

    async def decide(state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return (await served.decide(state, goal))[0]

    async def run_graph(state: np.ndarray, memory: np.ndarray) -> np.ndarray:
        served.check_goal(memory, state)
        if graph == "memory" and served.memory_batcher is not None:
            return await served.memory_batcher.submit(state, memory)
        return await served.choose(state, memory)

    # the graphs of a state machine run separately
    run = decide if served.memory_batcher is None else run_graph

    async def run_rows(inputs: dict[str, np.ndarray]) -> Outcome:
        state = rows.read(inputs["state"], served.specs["state"].batch)
        goal = rows.read(inputs["goal"], served.specs["goal"].batch)
        goal = rows.broadcast(goal, state, ("goal", "state"))
        return Outcome(await run(state.array, goal.array))

    return Model(model, served.version, graphs[graph], run_rows)


def _windows(array: np.ndarray, graph: Graph, limit: int) -> np.ndarray:
    steps, width = list_axes(graph.input("window").shape)[1:]
    if array.ndim != 3 or array.shape[1:] != (steps, width) or not 0 < len(array) <= limit:
        message = f"window has shape {list(array.shape)}"
        raise invalid("wrong_shape", message, "window", f"[B, {steps}, {width}], B up to {limit}")
    if not np.isfinite(array).all():
        raise invalid(
            "not_finite",
            "window has numbers that are not finite",
            "window",
            "finite float32 numbers",
        )
    return array


def list_axes(shape: tuple[int | str, ...]) -> list[int]:
    return [-1 if isinstance(axis, str) else axis for axis in shape]


def _unknown(model: str, version: Version, graphs: dict[str, Graph]) -> Refusal:
    there = ", ".join(f"{version.name}.{graph}" for graph in graphs)
    return Refusal(
        404,
        "unknown_model",
        f"no model {quoted(model)}; there are: {there}",
        "model",
        f"one of: {there}",
    )
