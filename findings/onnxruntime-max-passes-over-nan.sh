#!/usr/bin/env bash
# onnxruntime 1.31.1: the largest of some numbers is NaN only if the NaN stands first, otherwise NaN is passed over.
#
# numpy.max and torch.amax give NaN for any row that holds one, and argmax gives its place. ReduceMax, ReduceMin, ArgMax
# and TopK compare each number with the best so far, and no comparison with NaN holds: it stays if it is the first, and
# is passed over elsewhere. ONNX describes these reductions as similar to numpy's, and the element-wise Max of the same
# runtime gives NaN at any place. So a network whose output has gone wrong picks an action, or reports the size of its
# largest number, as if nothing had happened, and a check for NaN behind a maximum, which holds in torch, sees it in one
# place of eight. A sum (ReduceSum) shows it at any place.
#
# Seen (Python 3.11, Linux, CPU), of 8 numbers with one NaN, at each of the 8 places, how often the NaN shows: as NaN in
# the result, or as its place for ArgMax:
#   numpy.max    8 of 8     ReduceMax   1 of 8     Max of 8 inputs   8 of 8     TopK     1 of 8
#   numpy.argmax 8 of 8     ArgMax      1 of 8     ReduceSum         8 of 8     ReduceMin 1 of 8
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'onnxruntime==1.31.1' 'onnx==1.23.2' 'numpy==2.4.6'

cat > nan.py <<'PY'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(3)
COUNT = 8
AXIS = numpy_helper.from_array(np.array([1]), "axis")  # also the number of results of TopK


def run(nodes, rows, output=TensorProto.FLOAT):
    """The results of a graph from x to y, one for each row."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", COUNT])
    y = helper.make_tensor_value_info("y", output, None)
    graph = helper.make_graph(nodes, "g", [x], [y], [AXIS])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": rows})[0].reshape(COUNT)


rows = np.tile(np.arange(COUNT, dtype=np.float32), (COUNT, 1))
np.fill_diagonal(rows, np.nan)
node = helper.make_node
parts = [f"x{index}" for index in range(COUNT)]
split = [node("Split", ["x"], parts, axis=1, num_outputs=COUNT), node("Max", parts, ["y"])]
results = {
    "numpy.max": rows.max(1),
    "ReduceMax": run([node("ReduceMax", ["x", "axis"], ["y"])], rows),
    "ReduceMin": run([node("ReduceMin", ["x", "axis"], ["y"])], rows),
    "TopK": run([node("TopK", ["x", "axis"], ["y", "place"])], rows),
    "Max": run(split, rows),
    "ReduceSum": run([node("ReduceSum", ["x", "axis"], ["y"])], rows),
}
for name, values in results.items():
    print(f"{name}: {np.isnan(values).sum()} of {COUNT}, {np.isnan(values[0])} where it is first")
places = np.arange(COUNT)
print(f"numpy.argmax: {(rows.argmax(1) == places).sum()} of {COUNT}")
print(f"ArgMax: {(run([node('ArgMax', ['x'], ['y'], axis=1)], rows, TensorProto.INT64) == places).sum()} of {COUNT}")
PY
env/bin/python nan.py | tee seen
diff seen - <<'EXPECTED'
numpy.max: 8 of 8, True where it is first
ReduceMax: 1 of 8, True where it is first
ReduceMin: 1 of 8, True where it is first
TopK: 1 of 8, True where it is first
Max: 8 of 8, True where it is first
ReduceSum: 8 of 8, True where it is first
numpy.argmax: 8 of 8
ArgMax: 1 of 8
EXPECTED
