"""The yardstick: the simplest endpoint. FastAPI, pydantic models, one ONNX Runtime session.

REPERTOIRE_YARDSTICK=policy.onnx python -m uvicorn --factory benchmarks.yardstick:app
"""

from __future__ import annotations

import os

import numpy as np
from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.peer_servers.session import open_session


class ActRequest(BaseModel):
    state: list[list[float]]
    z: list[list[float]]


class ActReply(BaseModel):
    targets: list[list[float]]


def app() -> FastAPI:
    session = open_session(os.environ["REPERTOIRE_YARDSTICK"])
    app = FastAPI()

    @app.post("/act")
    async def act(request: ActRequest) -> ActReply:
        feed = {"state": np.array(request.state, np.float32), "z": np.array(request.z, np.float32)}
        return ActReply(targets=np.asarray(session.run(["targets"], feed)[0]).tolist())

    return app
