"""Ray Serve, batching on. python with_ray.py policy.onnx PORT"""

import sys
import time

import numpy as np
from ray import serve
from session import open_session
from starlette.requests import Request


@serve.deployment(max_ongoing_requests=256)
class Policy:
    def __init__(self, file):
        self.session = open_session(file)

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.001)
    async def run(self, requests):
        feed = {
            name: np.array([row for one in requests for row in one[name]], np.float32)
            for name in ("state", "z")
        }
        return [[row] for row in self.session.run(["targets"], feed)[0].tolist()]

    async def __call__(self, request: Request):
        return {"targets": await self.run(await request.json())}


if __name__ == "__main__":
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[2])})
    serve.run(Policy.bind(sys.argv[1]), route_prefix="/act")
    while True:
        time.sleep(60)
