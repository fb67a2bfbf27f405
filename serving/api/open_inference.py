"""/v2: the same skills by the Open Inference Protocol, so that clients made for Triton or KServe
work unchanged.

A model is a graph of a version: `humanoid` or `humanoid.policy`, `humanoid.encoder`,
`humanoid.style`, `reach` (a controller). A model's version is a number or an alias; without one,
the service's default or the latest."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from serving.api.app_state import get_service, refuse_if_draining
from serving.api.inference_models import find_model, list_axes
from serving.version import VERSION
from serving.wire import oip
from serving.wire.problems import INFERENCE_PROBLEMS, invalid, quoted
from serving.wire.reply import Reply

router = APIRouter(prefix="/v2", tags=["open inference protocol"], responses=INFERENCE_PROBLEMS)
INFER: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


@router.get("")
async def server() -> dict[str, Any]:
    """What this server is."""
    return {
        "name": "repertoire",
        "version": VERSION,
        "extensions": ["binary_tensor_data", "model_repository"],
    }


@router.get("/health/live")
async def live() -> dict[str, bool]:
    """The process answers."""
    return {"live": True}


@router.get("/health/ready")
async def ready(request: Request) -> dict[str, bool]:
    """As /readyz."""
    refuse_if_draining(request)
    await get_service(request).get_default_skill()
    return {"ready": True}


@router.post("/repository/index")
async def index(request: Request) -> list[dict[str, str]]:
    """Every version that can be served."""
    service = get_service(request)
    listed = [*await service.list_summaries("skills"), *await service.list_summaries("controller")]
    return [
        {"name": listing.name, "version": str(number), "state": "READY", "reason": ""}
        for listing in listed
        for number in listing.versions
    ]


@router.get("/models/{model}")
@router.get("/models/{model}/versions/{version}")
async def metadata(request: Request, model: str, version: str = "") -> dict[str, Any]:
    """Inputs and outputs of a model."""
    inference_model = await find_model(get_service(request), model, version)

    def tensors(side: str) -> list[dict[str, Any]]:
        named = getattr(inference_model.graph, side)
        return [{"name": t.name, "datatype": "FP32", "shape": list_axes(t.shape)} for t in named]

    return {
        "name": model,
        "versions": [str(inference_model.version.number)],
        "platform": "onnxruntime_onnx",
        "inputs": tensors("inputs"),
        "outputs": tensors("outputs"),
    }


@router.get("/models/{model}/config")
@router.get("/models/{model}/versions/{version}/config")
async def config(request: Request, model: str, version: str = "") -> dict[str, Any]:
    """The same in Triton's own words: the batch is no dimension there."""
    service = get_service(request)
    inference_model = await find_model(service, model, version)

    def tensors(side: str) -> list[dict[str, Any]]:
        named = getattr(inference_model.graph, side)
        return [
            {"name": t.name, "data_type": "TYPE_FP32", "dims": list_axes(t.shape)[1:]}
            for t in named
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
    await find_model(get_service(request), model, version)
    return {"name": model, "ready": True}


@router.post("/models/{model}/infer", openapi_extra=INFER)
@router.post("/models/{model}/versions/{version}/infer", openapi_extra=INFER)
async def infer(request: Request, model: str, version: str = "") -> Response:
    """Rows in, rows out."""
    inference_model = await find_model(get_service(request), model, version)
    call = oip.decode(await request.body(), dict(request.headers.raw))
    names = {tensor.name for tensor in inference_model.graph.inputs}
    if call.tensors.keys() != names:
        received = ", ".join(map(quoted, call.tensors)) or "none"
        expected = f"inputs {', '.join(sorted(names))}"
        raise invalid("missing_field", f"inputs are {received}", "inputs", expected)
    name = inference_model.graph.outputs[0].name
    if set(call.outputs) - {name}:
        raise invalid(
            "unknown_field", f"outputs are {', '.join(map(quoted, call.outputs))}", "outputs", name
        )
    outcome = await inference_model.run(call.tensors)
    parameters = {"z_normalised": True} if outcome.z_normalised else {}
    number = str(inference_model.version.number)
    data, headers = oip.encode(call, model, number, {name: outcome.output}, parameters)
    return Reply(200, data, headers).response()
