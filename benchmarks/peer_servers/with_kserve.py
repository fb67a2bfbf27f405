"""KServe's Python server, which has no batching. python with_kserve.py policy.onnx PORT"""

import sys

import kserve
from kserve import InferOutput, InferRequest, InferResponse
from session import open_session


class Policy(kserve.Model):
    def __init__(self, file):
        super().__init__("policy")
        self.session = open_session(file)
        self.ready = True

    def predict(self, payload: InferRequest, headers=None, response_headers=None):
        feed = {one.name: one.as_numpy() for one in payload.inputs}
        output = InferOutput("targets", [len(feed["z"]), 28], "FP32")
        output.set_data_from_numpy(self.session.run(["targets"], feed)[0], binary_data=False)
        return InferResponse(payload.id, "policy", [output])


if __name__ == "__main__":
    kserve.ModelServer(http_port=int(sys.argv[2]), enable_grpc=False, access_log_format=None).start(
        [Policy(sys.argv[1])]
    )
