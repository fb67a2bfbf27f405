#!/usr/bin/env bash
# torch 2.13.0, onnxscript 0.7.2: torch.onnx.export(dynamo=True) writes functions that guard against overflow as the
# plain formulas that they guard against.
#
# logsigmoid, binary_cross_entropy_with_logits, logaddexp and log1p exist because log(sigmoid(x)), log(exp(a) + exp(b))
# and log(1 + x) lose the result. The exporter writes just these, with the operators Sigmoid, Exp, Add and Log. A score
# or style reward that is the logsigmoid of a discriminator is then infinite for what the discriminator is sure of, and
# a comparison with torch at small numbers shows nothing. softplus keeps its guard, and -softplus(-x) is the same
# function as logsigmoid(x). In the source: aten_log_sigmoid, aten_logaddexp and aten_log1p of onnxscript's torch_lib.
#
# Seen (onnxruntime 1.31.1, Python 3.11, Linux, CPU), the result by torch and by the exported model:
#   logsigmoid(-2)                -2.13   -2.13
#   logsigmoid(-200)              -200    -inf    (-inf already at -20, by onnxruntime's Sigmoid)
#   -softplus(200)                -200    -200
#   cross entropy of -200 and 1   200     inf
#   logaddexp(100, 0)             100     inf
#   log1p(1e-8)                   1e-08   0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0' 'onnx==1.23.2' 'onnxscript==0.7.2' 'onnxruntime==1.31.1' 'numpy==2.4.6'

cat > export.py <<'PY'
import logging
import warnings

import onnxruntime
import torch
from torch.nn import functional

logging.getLogger("torch.onnx").setLevel(logging.ERROR)
warnings.simplefilter("ignore")


class Function(torch.nn.Module):
    """A module of one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def cross_entropy(x):
    """Of the logit x and the label 1."""
    return functional.binary_cross_entropy_with_logits(x, torch.ones_like(x), reduction="none")


def show(name, function, number):
    """Print what torch and the exported model make of a number."""
    x = torch.tensor([number])
    module = Function(function).eval()
    program = torch.onnx.export(module, (x,), input_names=["x"], output_names=["y"], dynamo=True, verbose=False)
    content = program.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    exported = session.run(None, {"x": x.numpy()})[0]
    print(f"{name}: {module(x).item():.3g} {exported.item():.3g}")


show("logsigmoid(-2)", functional.logsigmoid, -2.0)
show("logsigmoid(-200)", functional.logsigmoid, -200.0)
show("-softplus(200)", lambda x: -functional.softplus(-x), -200.0)
show("cross entropy", cross_entropy, -200.0)
show("logaddexp(100, 0)", lambda x: torch.logaddexp(x, torch.zeros_like(x)), 100.0)
show("log1p(1e-8)", torch.log1p, 1e-8)
PY
env/bin/python export.py | tee seen
diff seen - <<'EXPECTED'
logsigmoid(-2): -2.13 -2.13
logsigmoid(-200): -200 -inf
-softplus(200): -200 -200
cross entropy: 200 inf
logaddexp(100, 0): 100 inf
log1p(1e-8): 1e-08 0
EXPECTED
