"""BentoML, without batching. POLICY=policy.onnx bentoml serve with_bentoml:Policy --port PORT"""

import os

import bentoml
import numpy as np
from session import open_session


@bentoml.service(workers=1)
class Policy:
    def __init__(self) -> None:
        self.session = open_session(os.environ["POLICY"])

    @bentoml.api(route="/act")
    def act(self, state: list[list[float]], z: list[list[float]]) -> dict[str, list[list[float]]]:
        feed = {"state": np.array(state, np.float32), "z": np.array(z, np.float32)}
        return {"targets": self.session.run(["targets"], feed)[0].tolist()}
