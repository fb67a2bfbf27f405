#!/usr/bin/env bash
# onnxsim 0.8.1, onnxoptimizer 0.4.2, onnxslim 0.1.98: two random draws of a model become one, or a constant.
#
# Each is there to make a model simpler without changing what it does. A stochastic policy draws the noise for its hips
# and for its arms by two RandomNormalLike nodes, which have the same input and attributes; as an operator's output is
# random, one would guess that they are left alone, as they are by onnxruntime, by onnxscript and by onnx-ir's
# elimination of common subexpressions. The three keep one of the nodes and use its values twice, with their default
# settings and without a warning: means and deviations stay right, and the joints explore in step. And onnxslim
# computes RandomNormal, a draw of a fixed shape, once while it optimizes, and its value in the file is that of every
# run. Seeds that differ keep the nodes apart, and do not keep onnxslim from the latter. torch.onnx.export writes such
# nodes for randn_like.
#
# Seen (onnx 1.23.2, onnxruntime 1.32.0, Python 3.11, Linux), the correlation of the noise of hips and arms over 4000
# characters, and whether a second run draws another RandomNormal:
#                            correlation   second draw
#   as written               0.0           another
#   onnxruntime, saved       0.0           another
#   onnxscript               0.0           another
#   onnx-ir                  0.0           another
#   onnxoptimizer            1.0           another
#   onnxsim                  1.0           another
#   onnxslim                 1.0           the same
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'onnx==1.23.2' 'onnxruntime==1.32.0' 'onnxsim==0.8.1' \
    'onnxoptimizer==0.4.2' 'onnxslim==0.1.98' 'onnxscript==0.7.2' 'onnx-ir==1.1.0' 'numpy==2.4.6'

cat > draws.py <<'PY'
import numpy as np
import onnx
import onnx_ir
import onnxoptimizer
import onnxruntime
import onnxscript.optimizer
import onnxsim
import onnxslim
from onnx_ir.passes.common import CommonSubexpressionEliminationPass

POLICY = """<ir_version: 8, opset_import: ["": 17]>
policy (float[N, 1] mean) => (float[N, 1] hips, float[N, 1] arms, float[4] start) {
  hip_noise = RandomNormalLike<dtype = 1SEED1>(mean)
  arm_noise = RandomNormalLike<dtype = 1SEED2>(mean)
  hips = Add(mean, hip_noise)
  arms = Add(mean, arm_noise)
  draw = RandomNormal<shape = [4]>()
  two = Constant<value = float {2.0}>()
  start = Mul(draw, two)
}"""


def policy(seeds=("", "")):
    model = onnx.parser.parse_model(POLICY.replace("SEED1", seeds[0]).replace("SEED2", seeds[1]))
    onnx.checker.check_model(model, full_check=True)
    return model


def by_onnxruntime(model):
    """The model that onnxruntime runs, with all its optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = "saved.onnx"
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load("saved.onnx")


def by_onnx_ir(model):
    return onnx_ir.to_proto(CommonSubexpressionEliminationPass()(onnx_ir.from_proto(model)).model)


def by_onnxsim(model):
    return onnxsim.simplify(model)[0]


def show(name, model):
    """Print how the two draws agree, and whether two runs do."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"mean": np.zeros((4000, 1), np.float32)}
    hips, arms, start = session.run(None, feeds)
    again = session.run(None, feeds)[2]
    correlation = abs(np.corrcoef(hips[:, 0], arms[:, 0])[0, 1])
    print(f"{name}: {correlation:.1f}, {'the same' if np.array_equal(start, again) else 'another'}")


OPTIMIZERS = {
    "onnxruntime": by_onnxruntime,
    "onnxscript": onnxscript.optimizer.optimize,
    "onnx-ir": by_onnx_ir,
    "onnxoptimizer": onnxoptimizer.optimize,
    "onnxsim": by_onnxsim,
    "onnxslim": onnxslim.slim,
}
show("as written", policy())
for name, optimize in OPTIMIZERS.items():
    show(name, optimize(policy()))
for name, optimize in OPTIMIZERS.items():
    show(f"{name}, seeds", optimize(policy((", seed = 1.0", ", seed = 2.0"))))
PY
env/bin/python draws.py 2> errors | tee seen || { cat errors; exit 1; }
diff seen - <<'EXPECTED'
as written: 0.0, another
onnxruntime: 0.0, another
onnxscript: 0.0, another
onnx-ir: 0.0, another
onnxoptimizer: 1.0, another
onnxsim: 1.0, another
onnxslim: 1.0, the same
onnxruntime, seeds: 0.0, another
onnxscript, seeds: 0.0, another
onnx-ir, seeds: 0.0, another
onnxoptimizer, seeds: 0.0, another
onnxsim, seeds: 0.0, another
onnxslim, seeds: 0.0, the same
EXPECTED
