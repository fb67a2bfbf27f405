"""PyTriton, which brings Triton itself, batching on. python with_pytriton.py policy.onnx PORT"""

import sys

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig
from session import open_session

session = open_session(sys.argv[1])


@batch
def run(state, z):
    return session.run(["targets"], {"state": state, "z": z})


if __name__ == "__main__":
    port = int(sys.argv[2])
    with Triton(
        config=TritonConfig(http_port=port, grpc_port=port + 1, metrics_port=port + 2)
    ) as triton:
        triton.bind(
            model_name="policy",
            infer_func=run,
            inputs=[
                Tensor(name="state", dtype=np.float32, shape=(253,)),
                Tensor(name="z", dtype=np.float32, shape=(64,)),
            ],
            outputs=[Tensor(name="targets", dtype=np.float32, shape=(28,))],
            config=ModelConfig(
                max_batch_size=64, batcher=DynamicBatcher(max_queue_delay_microseconds=1000)
            ),
        )
        triton.serve()
