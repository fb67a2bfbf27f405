#!/usr/bin/env bash
# torch 2.13.0, onnx 1.23.2, onnxruntime 1.32.0: exported for opset 21 instead of 20, a GroupNorm gives wrong numbers.
#
# torch.nn.GroupNorm is accurate where the mean of its numbers is large, and so are the operators that
# torch.onnx.export(dynamo=True) writes for opset 20, its default. From opset 21 it writes GroupNormalization.
# onnxruntime has no kernel for it on the CPU and runs the function of the ONNX standard instead: the mean of the
# squares less the square of the mean, a difference that float32 cannot hold where the numbers are large and their
# deviation is small. One would guess that a newer opset computes the same, and LayerNormalization does. So a network
# that normalizes positions in the world, a pressure in pascal or a time in ms gives numbers of any size or NaN, and a
# comparison with torch at unit normal numbers shows nothing. ONNX's own reference implementation does the same. In the
# source: GroupNormalization in onnx/defs/nn/defs.cc.
#
# Seen (onnxscript 0.7.2, Python 3.11, Linux, CPU), of 200 rows of 64 numbers with deviation 1 about a mean, whether the
# results are right. Wrong are more than half of the rows, by more than 0.5 of the deviation of 1, or NaN:
#                                     mean 0    mean 10000    mean 100000
#   GroupNorm in torch                right     right         right
#   GroupNorm, opset 20               right     right         right
#   GroupNorm, opset 21               right     wrong         wrong
#   GroupNorm, opset 21, reference    right     wrong         wrong
#   LayerNorm, opset 21               right     right         right
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0' 'onnx==1.23.2' 'onnxscript==0.7.2' \
    'onnxruntime==1.32.0' 'numpy==2.4.6'

cat > norms.py <<'PY'
import sys

import numpy as np
import onnxruntime
import torch
from onnx.reference import ReferenceEvaluator

ROWS, WIDTH = 200, 64
MEANS = 0, 10_000, 100_000


def rows(mean):
    """Random rows in float32 whose numbers have the deviation 1."""
    return (np.random.default_rng(0).standard_normal((ROWS, WIDTH)) + mean).astype(np.float32)


def exported(layer, opset):
    """A layer as ONNX."""
    program = torch.onnx.export(layer, (torch.zeros(ROWS, WIDTH),), dynamo=True, opset_version=opset, verbose=False)
    return program.model_proto


def judge(results, mean):
    """Whether the rows are right."""
    numbers = rows(mean).astype(np.float64)
    deviations = numbers - numbers.mean(1, keepdims=True)
    right = deviations / np.sqrt(np.square(deviations).mean(1, keepdims=True) + 1e-5)
    wrong = np.mean(~(np.abs(results - right).max(1) < 0.5))
    return "wrong" if wrong > 0.5 else f"{wrong:.0%} wrong" if wrong else "right"


def show(name, run):
    """A line of what a layer does to rows with each mean."""
    with np.errstate(invalid="ignore"):
        lines.append(f"{name}: {', '.join(judge(run(rows(mean)), mean) for mean in MEANS)}")


def in_onnxruntime(model):
    """A function that runs a model in onnxruntime."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]


def in_reference(model):
    """A function that runs a model in ONNX's reference implementation."""
    evaluator = ReferenceEvaluator(model)
    return lambda x: evaluator.run(None, {evaluator.input_names[0]: x})[0]


lines = []
group_norm = torch.nn.GroupNorm(1, WIDTH).eval()
group_norm_21 = exported(group_norm, 21)
show("torch", lambda x: group_norm(torch.from_numpy(x)).detach().numpy())
show("opset 20", in_onnxruntime(exported(group_norm, 20)))
show("opset 21", in_onnxruntime(group_norm_21))
show("opset 21, reference", in_reference(group_norm_21))
show("LayerNorm, opset 21", in_onnxruntime(exported(torch.nn.LayerNorm(WIDTH).eval(), 21)))
with open(sys.argv[1], "w") as file:
    file.write("\n".join(lines) + "\n")
PY
env/bin/python norms.py seen > log 2>&1 || { cat log; exit 1; }
cat seen
diff seen - <<'EXPECTED'
torch: right, right, right
opset 20: right, right, right
opset 21: right, wrong, wrong
opset 21, reference: right, wrong, wrong
LayerNorm, opset 21: right, right, right
EXPECTED
