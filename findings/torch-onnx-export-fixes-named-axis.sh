#!/usr/bin/env bash
# torch 2.13.0, onnx 1.23.2, onnxscript 0.7.2: torch.onnx.export(dynamo=True) writes a fixed batch axis although
# `dynamic_shapes` names it with torch.export.Dim, and reports success.
#
# One would guess that a model whose code fixes an axis (here `len(x)` in `forward`, where `x.shape[0]` would stay
# symbolic) is refused: torch.export.export does refuse it, with the very same module and Dim ("You marked B as dynamic
# but your code specialized it to be a constant (3)"). torch.onnx.export passes its export step and writes an input of
# shape [3, 2]. The graph then works in every check that uses the example's batch, and refuses any other batch once it
# is served.
#
# Seen:
#   torch.export.export          UserError
#   torch.onnx.export, len(x)    input [3, 2]
#   torch.onnx.export, x.shape   input ['B', 2]
#   served with 5 rows           InvalidArgument
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0' 'onnx==1.23.2' 'onnxscript==0.7.2' 'onnxruntime==1.31.1' 'numpy==2.4.6'
cat > export.py <<'PY'
import logging
import warnings

import numpy as np
import onnxruntime
import torch

logging.getLogger("torch.onnx").setLevel(logging.ERROR)
warnings.simplefilter("ignore")
BATCH = torch.export.Dim("B", min=1, max=64)


class WithLen(torch.nn.Module):
    def forward(self, x):
        return x + torch.ones(2).expand(len(x), -1)


class WithShape(torch.nn.Module):
    def forward(self, x):
        return x + torch.ones(2).expand(x.shape[0], -1)


def export(module):
    program = torch.onnx.export(
        module.eval(),
        kwargs={"x": torch.zeros(3, 2)},
        input_names=["x"],
        output_names=["y"],
        dynamic_shapes={"x": {0: BATCH}},
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    return program.model_proto


def shape(model):
    return [axis.dim_value or axis.dim_param for axis in model.graph.input[0].type.tensor_type.shape.dim]


try:
    torch.export.export(WithLen(), (), {"x": torch.zeros(3, 2)}, dynamic_shapes={"x": {0: BATCH}})
    refusal = "none"
except Exception as error:
    refusal = type(error).__name__
print("torch.export.export         ", refusal)
fixed = export(WithLen())
free = export(WithShape())
print("torch.onnx.export, len(x)   input", shape(fixed))
print("torch.onnx.export, x.shape  input", shape(free))
session = onnxruntime.InferenceSession(fixed.SerializeToString(), providers=["CPUExecutionProvider"])
try:
    session.run(None, {"x": np.zeros((5, 2), np.float32)})
    served = "none"
except Exception as error:
    served = type(error).__name__
print("served with 5 rows          ", served)
assert refusal == "UserError"
assert shape(fixed) == [3, 2]
assert shape(free) == ["B", 2]
assert served == "InvalidArgument"
PY
env/bin/python export.py
