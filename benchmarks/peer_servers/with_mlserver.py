"""MLServer, batching on. Its settings are files, which benchmarks/peers.py writes beside this one's
copy."""

import os

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from session import open_session


class Policy(MLModel):
    async def load(self) -> bool:
        self.session = open_session(os.environ["POLICY"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        feed = {one.name: NumpyCodec.decode_input(one).astype("float32") for one in payload.inputs}
        output = NumpyCodec.encode_output("targets", self.session.run(["targets"], feed)[0])
        return InferenceResponse(model_name=self.name, outputs=[output])
