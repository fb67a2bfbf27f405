#!/usr/bin/env bash
# onnx 1.23.2: extract_model drops the metadata of a model, and with it joint names and control rate.
#
# Policies for robots carry what a controller needs, as joint names, in metadata_props of the model.
# onnx.utils.extract_model, which cuts a graph down to some of its inputs and outputs, leaves them behind; the version
# converter, shape inference and compose.merge_models keep them.
#
# Seen (Python 3.11, Linux), entries of metadata_props of a policy with two of them:
#   extract_model      0
#   convert_version    2
#   infer_shapes       2
#   merge_models       4 (two of each model, by different names)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'onnx==1.23.2' 'numpy==2.4.6'

cat > metadata.py <<'PY'
import onnx
from onnx import TensorProto, compose, helper, shape_inference, utils, version_converter


def policy(prefix):
    """A graph of two operators, with the metadata of a controller."""
    values = [
        helper.make_tensor_value_info(prefix + name, TensorProto.FLOAT, ["B", 3])
        for name in ("obs", "targets")
    ]
    nodes = [
        helper.make_node("Tanh", [prefix + "obs"], [prefix + "action"]),
        helper.make_node("Neg", [prefix + "action"], [prefix + "targets"]),
    ]
    graph = helper.make_graph(nodes, prefix + "policy", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    helper.set_model_props(model, {prefix + "joint_names": "hip,knee,ankle", prefix + "dt": "0.02"})
    return model


def count(name, model):
    print(f"{name}: {len(model.metadata_props)}")


onnx.save(policy("a_"), "policy.onnx")
utils.extract_model("policy.onnx", "part.onnx", ["a_obs"], ["a_targets"])
count("extract_model", onnx.load("part.onnx"))
count("convert_version", version_converter.convert_version(policy("a_"), 21))
count("infer_shapes", shape_inference.infer_shapes(policy("a_")))
count("merge_models", compose.merge_models(policy("a_"), policy("b_"), [("a_targets", "b_obs")]))
PY
env/bin/python metadata.py | tee seen
diff seen - <<'EXPECTED'
extract_model: 0
convert_version: 2
infer_shapes: 2
merge_models: 4
EXPECTED
