#!/usr/bin/env bash
# onnxruntime 1.31.1: with an output bound once by name, each run overwrites the answers to the runs before.
#
# bind_output("y") names no buffer, so one would guess that each run makes its own, as session.run does. The first run
# makes it and leaves it bound: the next writes into it, and the arrays that get_outputs()[0].numpy() gave are views of
# it. A list of actions kept in this way holds the last action again and again, and a reply that is not yet sent changes.
# A batch of another size is refused. Binding before each run, or copy_outputs_to_cpu(), gives answers that stay.
#
# Seen (Python 3.11, Linux), of a model that doubles, asked 1 and then 5, the two answers at the end:
#   bound once, numpy()                 10 10
#   bound once, copy_outputs_to_cpu()   2 10
#   bound before each run, numpy()      2 10
#   session.run                         2 10
#   bound once, then 3 rows             an error: "... has shape {1} but the computed output shape for this run is {3} ..."
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'onnxruntime==1.31.1' 'onnx==1.23.2' 'numpy==2.4.6'

cat > bound.py <<'PY'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)
tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B"]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", tensors[:1], tensors[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def run(binding, rows):
    binding.bind_cpu_input("x", np.asarray(rows, np.float32))
    session.run_with_iobinding(binding)
    return binding


def rebind(binding, rows):
    binding.bind_output("y")
    return run(binding, rows)


def show(name, answer):
    """Print both answers once the second is there."""
    binding = session.io_binding()
    binding.bind_output("y")
    first = answer(binding, [1])
    second = answer(binding, [5])
    print(f"{name}: {first[0]:.0f} {second[0]:.0f}")


show("bound once, numpy()", lambda binding, rows: run(binding, rows).get_outputs()[0].numpy())
show("bound once, copy_outputs_to_cpu()", lambda binding, rows: run(binding, rows).copy_outputs_to_cpu()[0])
show("bound before each run, numpy()", lambda binding, rows: rebind(binding, rows).get_outputs()[0].numpy())
show("session.run", lambda binding, rows: session.run(["y"], {"x": np.asarray(rows, np.float32)})[0])
binding = session.io_binding()
binding.bind_output("y")
run(binding, [1])
try:
    run(binding, [1, 2, 3])
except Exception as error:
    print("bound once, then 3 rows:", "has shape {1} but the computed output shape for this run is {3}" in str(error))
PY
env/bin/python bound.py | tee seen
diff seen - <<'EXPECTED'
bound once, numpy(): 10 10
bound once, copy_outputs_to_cpu(): 2 10
bound before each run, numpy(): 2 10
session.run: 2 10
bound once, then 3 rows: True
EXPECTED
