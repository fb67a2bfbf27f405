"""LitServe, batching on. python with_litserve.py policy.onnx PORT"""

import sys

import litserve
import numpy as np
from session import open_session


class Policy(litserve.LitAPI):
    def setup(self, device):
        self.session = open_session(sys.argv[1])

    def decode_request(self, request):
        return np.array(request["state"], np.float32), np.array(request["z"], np.float32)

    def batch(self, inputs):
        return tuple(np.concatenate(column) for column in zip(*inputs, strict=True))

    def predict(self, given):
        return self.session.run(["targets"], {"state": given[0], "z": given[1]})[0]

    def unbatch(self, output):
        return list(output[:, None])

    def encode_response(self, output):
        return {"targets": output.tolist()}


if __name__ == "__main__":
    api = Policy(max_batch_size=64, batch_timeout=0.001, api_path="/act")
    litserve.LitServer(api, accelerator="cpu").run(
        port=int(sys.argv[2]), host="127.0.0.1", log_level="warning"
    )
