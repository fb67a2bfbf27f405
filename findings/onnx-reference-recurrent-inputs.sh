#!/usr/bin/env bash
# onnx 1.23.2: the reference evaluator ignores the sequence lengths, activations and clip of GRU and LSTM operators.
#
# onnx.reference.ReferenceEvaluator is what an exporter or a runtime is compared with, so one would guess that it
# computes an operator as the standard has it, or refuses. Weights, initial state, direction and layout have their
# effect. Of a padded batch it takes sequence_lens and goes on over the padding, so the last state of each sequence but
# the longest is that after the padding. It takes Sigmoid and Tanh whatever `activations` names. There is no error and
# no warning, and the checker accepts the model. A comparison in which all sequences are equally long shows nothing.
# onnxruntime computes all of it. In the source: onnx/reference/ops/op_gru.py and op_lstm.py.
#
# Seen (onnxruntime 1.31.1, Python 3.11, Linux, CPU), whether the last state is what these give:
#                                                        reference   onnxruntime
#   GRU, batch of lengths 4 and 2: each sequence alone   no          yes
#   LSTM, the same                                       no          yes
#   GRU, HardSigmoid and Relu: other than by default     no          yes
#   GRU, clip=0.5: other than by default                 no          yes
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'onnx==1.23.2' 'onnxruntime==1.31.1' 'numpy==2.4.6'

cat > recurrent.py <<'PY'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

SIZE = 5
LENGTHS = [4, 2]
random = np.random.default_rng(0)
padded = random.normal(size=(max(LENGTHS), len(LENGTHS), 3)).astype(np.float32)


def model(operator, **attributes):
    """A model of one recurrent operator, from a batch and its lengths to the last state."""
    gates = {"GRU": 3, "LSTM": 4}[operator]
    weights = np.random.default_rng(1)
    constants = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, weights.normal(size=shape).astype(np.float32).ravel())
        for name, shape in [("W", (1, gates * SIZE, 3)), ("R", (1, gates * SIZE, SIZE))]
    ]
    node = helper.make_node(
        operator, ["x", "W", "R", "", "lengths"], ["", "state"], hidden_size=SIZE, **attributes
    )
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["T", "B", 3]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, ["B"]),
    ]
    output = helper.make_tensor_value_info("state", TensorProto.FLOAT, [1, "B", SIZE])
    graph = helper.make_graph([node], "policy", inputs, [output], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return made


def by_reference(made, x, lengths):
    feed = {"x": x, "lengths": np.array(lengths, np.int32)}
    return ReferenceEvaluator(made).run(None, feed)[0][0]


def by_onnxruntime(made, x, lengths):
    feed = {"x": x, "lengths": np.array(lengths, np.int32)}
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0][0]


def show(name, truth):
    print(f"{name}:", *("yes" if truth(run) else "no" for run in (by_reference, by_onnxruntime)))


def as_alone(operator):
    """Whether the states of a padded batch are those of each sequence without padding."""
    made = model(operator)

    def truth(run):
        alone = [run(made, padded[:n, i : i + 1], [n])[0] for i, n in enumerate(LENGTHS)]
        return np.allclose(run(made, padded, LENGTHS), alone, atol=1e-5)

    return truth


def has_effect(**attributes):
    """Whether an attribute changes the states of a batch without padding."""
    full = [max(LENGTHS)] * len(LENGTHS)
    default, other = model("GRU"), model("GRU", **attributes)
    return lambda run: not np.allclose(run(default, padded, full), run(other, padded, full), atol=1e-5)


show("GRU, lengths", as_alone("GRU"))
show("LSTM, lengths", as_alone("LSTM"))
show("GRU, activations", has_effect(activations=["HardSigmoid", "Relu"]))
show("GRU, clip", has_effect(clip=0.5))
PY
env/bin/python recurrent.py | tee seen
diff seen - <<'EXPECTED'
GRU, lengths: no yes
LSTM, lengths: no yes
GRU, activations: no yes
GRU, clip: no yes
EXPECTED
