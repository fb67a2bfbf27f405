"""/v2: the same skills by the Open Inference Protocol, so that clients made for Triton or KServe
work unchanged.

A model is a graph of a version: `humanoid` or `humanoid.policy`, `humanoid.encoder`,
`humanoid.style`, `reach` (a controller). A model's version is a number or an alias; without one,
the service's default or the latest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response

from serving.models.batcher import require_finite
from serving.models.service import Service
from serving.models.skills import ServedController, ServedSkill
from serving.wire import oip, rows
from serving.wire.problems import INFERENCE_PROBLEMS, Refusal, invalid, quoted
from serving.wire.reply import Reply
from serving.wire.rows import Form
from skills_store.graph import Graph
from skills_store.version import Version

router = APIRouter(prefix="/v2", tags=["open inference protocol"], responses=INFERENCE_PROBLEMS)
INFER: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


@dataclass(frozen=True)
class Model:
    """A graph that can be asked."""

    name: str
    version: Version
    graph: Graph
    run: Callable[[dict[str, np.ndarray]], Awaitable[np.ndarray]]


def _service(request: Request) -> Service:
    return request.app.state.service


@router.get("")
async def server() -> dict[str, Any]:
    """What this server is."""
    return {
        "name": "repertoire",
        "version": "0.1.0",
        "extensions": ["binary_tensor_data", "model_repository"],
    }


@router.get("/health/live")
async def live() -> dict[str, bool]:
    """The process answers."""
    return {"live": True}


@router.get("/health/ready")
async def ready(request: Request) -> dict[str, bool]:
    """As /readyz."""
    if request.app.state.gateway.draining:
        raise Refusal(
            503, "draining", "this process is about to end", None, "another replica", retry_after=1
        )
    await _service(request).default()
    return {"ready": True}


@router.post("/repository/index")
async def index(request: Request) -> list[dict[str, str]]:
    """Every version that can be served."""
    service = _service(request)
    kinds = {"skills": "policy", "controller": "controller"}
    listed = [(one, graph) for kind, graph in kinds.items() for one in await service.listed(kind)]
    return [
        {"name": one.name, "version": str(number), "state": "READY", "reason": ""}
        for one, _ in listed
        for number in one.versions
    ]


@router.get("/models/{model}")
@router.get("/models/{model}/versions/{version}")
async def metadata(request: Request, model: str, version: str = "") -> dict[str, Any]:
    """Inputs and outputs of a model."""
    found = await _model(_service(request), model, version)

    def tensors(which: str) -> list[dict[str, Any]]:
        named = getattr(found.graph, which)
        return [{"name": t.name, "datatype": "FP32", "shape": _shape(t.shape)} for t in named]

    return {
        "name": model,
        "versions": [str(found.version.number)],
        "platform": "onnxruntime_onnx",
        "inputs": tensors("inputs"),
        "outputs": tensors("outputs"),
    }


@router.get("/models/{model}/config")
@router.get("/models/{model}/versions/{version}/config")
async def config(request: Request, model: str, version: str = "") -> dict[str, Any]:
    """The same in Triton's own words: the batch is no dimension there."""
    service = _service(request)
    found = await _model(service, model, version)

    def tensors(which: str) -> list[dict[str, Any]]:
        named = getattr(found.graph, which)
        return [
            {"name": t.name, "data_type": "TYPE_FP32", "dims": _shape(t.shape)[1:]} for t in named
        ]

    return {
        "name": model,
        "platform": "onnxruntime_onnx",
        "max_batch_size": service.settings.max_rows,
        "input": tensors("inputs"),
        "output": tensors("outputs"),
    }


@router.get("/models/{model}/ready")
@router.get("/models/{model}/versions/{version}/ready")
async def model_ready(request: Request, model: str, version: str = "") -> dict[str, Any]:
    """The model is open."""
    await _model(_service(request), model, version)
    return {"name": model, "ready": True}


@router.post("/models/{model}/infer", openapi_extra=INFER)
@router.post("/models/{model}/versions/{version}/infer", openapi_extra=INFER)
async def infer(request: Request, model: str, version: str = "") -> Response:
    """Rows in, rows out."""
    found = await _model(_service(request), model, version)
    call = oip.decode(await request.body(), dict(request.headers.raw))
    wanted = {tensor.name for tensor in found.graph.inputs}
    if call.tensors.keys() != wanted:
        given = ", ".join(map(quoted, call.tensors)) or "none"
        raise invalid(
            "missing_field", f"inputs are {given}", "inputs", f"inputs {', '.join(sorted(wanted))}"
        )
    name = found.graph.outputs[0].name
    if set(call.outputs) - {name}:
        raise invalid(
            "unknown_field", f"outputs are {', '.join(map(quoted, call.outputs))}", "outputs", name
        )
    output = await found.run(call.tensors)
    data, headers = oip.encode(call, model, str(found.version.number), {name: output})
    return Reply(200, data, headers).response()


async def _model(service: Service, model: str, version: str) -> Model:
    name, dot, graph = model.partition(".")
    if not name or (dot and not graph):
        message = f"no model {quoted(model)}"
        raise Refusal(404, "unknown_model", message, "model", "NAME or NAME.GRAPH")
    ref = f"{name}@{version}" if version else _default(service, name)
    try:
        served = await service.skill(ref, "model")
    except Refusal as refusal:
        if refusal.problem.code != "wrong_kind":
            raise
        return _controller(model, graph or "controller", await service.controller(ref))
    return _skill(service, model, graph or "policy", served)


def _default(service: Service, name: str) -> str:
    """The service's own default, where it is a version of that name."""
    return service.settings.skill if service.settings.skill.partition("@")[0] == name else name


def _skill(service: Service, model: str, graph: str, served: ServedSkill) -> Model:
    graphs = served.manifest.graphs
    library = served.library
    if graph not in graphs:
        raise _unknown(model, served.version, graphs)

    async def policy(given: dict[str, np.ndarray]) -> np.ndarray:
        state = _rows(given["state"], served.forms["state"])
        z = _rows(given["z"], served.forms["z"])
        z = rows.broadcast(z, state, ("z", "state"))
        return await served.policy.submit(
            state.array, rows.project_to_sphere(z, "z", strict=False)[0]
        )

    async def run_windows(given: dict[str, np.ndarray]) -> np.ndarray:
        windows = _windows(given["window"], graphs[graph], service.settings.max_rows)
        return require_finite(
            await service.engine.long(
                library.encode if graph == "encoder" else library.style, windows
            )
        )

    return Model(model, served.version, graphs[graph], policy if graph == "policy" else run_windows)


def _controller(model: str, graph: str, served: ServedController) -> Model:
    graphs = served.version.manifest.graphs
    if graph not in graphs:
        raise _unknown(model, served.version, graphs)

    async def decide(given: dict[str, np.ndarray]) -> np.ndarray:
        state = _rows(given["state"], served.forms["state"])
        goal = _rows(given["goal"], served.forms["goal"])
        goal = rows.broadcast(goal, state, ("goal", "state"))
        return await served.decide(state.array, goal.array)

    return Model(model, served.version, graphs[graph], decide)


def _rows(array: np.ndarray, form: Form) -> rows.Rows:
    found = rows.read(array, form)
    if found.one:
        raise invalid(
            "wrong_shape",
            f"{form.field} has shape {list(array.shape)}",
            form.field,
            f"[B, {form.width}]",
        )
    return found


def _windows(array: np.ndarray, graph: Graph, limit: int) -> np.ndarray:
    wanted = _shape(graph.input("window").shape)[1:]
    if array.ndim != 3 or list(array.shape[1:]) != wanted or not 0 < len(array) <= limit:
        message = f"window has shape {list(array.shape)}"
        raise invalid(
            "wrong_shape", message, "window", f"[B, {wanted[0]}, {wanted[1]}], B up to {limit}"
        )
    if not np.isfinite(array).all():
        raise invalid(
            "not_finite",
            "window has numbers that are not finite",
            "window",
            "finite float32 numbers",
        )
    return array


def _shape(shape: tuple[int | str, ...]) -> list[int]:
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
