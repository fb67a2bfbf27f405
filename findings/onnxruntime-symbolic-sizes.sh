#!/usr/bin/env bash
# onnxruntime 1.31.1: two inputs whose first size has the same name may have different numbers of rows.
#
# A policy exported with a symbolic batch size declares state (B, S) and z (B, D), and one would take B for one number.
# onnxruntime does not compare two sizes of one name: what a call with 4 states and 1 z does is left to the operators.
# Concat refuses it, in the middle of the graph and by the name of the operator; Add broadcasts it, so that all states
# are answered with the one z.
#
# Seen (Python 3.11, Linux), rows of the result with 4 rows and 1 row:
#   Add      4
#   Concat   Fail, of node Concat
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'onnxruntime==1.31.1' 'onnx==1.23.2' 'numpy==2.4.6'

cat > sizes.py <<'PY'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)


def rows(operator, **attributes):
    """Rows of the result for 4 rows of x and 1 of y, both declared with B rows."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 2]) for name in "xy"]
    width = 4 if operator == "Concat" else 2
    result = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["B", width])
    node = helper.make_node(operator, ["x", "y"], ["out"], **attributes)
    graph = helper.make_graph([node], "policy", values, [result])
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = {"x": np.ones((4, 2), np.float32), "y": np.ones((1, 2), np.float32)}
    try:
        return len(session.run(None, feed)[0])
    except Exception as error:
        return f"{type(error).__name__}, names Concat: {'Concat node' in str(error)}"


print("Add", rows("Add"))
print("Concat", rows("Concat", axis=1))
PY
env/bin/python sizes.py | tee seen
diff seen - <<'EXPECTED'
Add 4
Concat Fail, names Concat: True
EXPECTED
