#!/usr/bin/env bash
# tract 0.23.9: an ONNX GRU, LSTM or RNN whose direction is reverse reads its sequence forwards.
#
# ONNX has three directions, and the reversed half of a bidirectional layer is right here, so one would guess that the
# same weights in a layer of direction="reverse" are too; a motion encoder that sums up what is to come has such a
# layer. tract takes the file without a warning and answers as for direction="forward", in all outputs. A sequence of
# one step is right, so a test of one step passes.
#
# Seen (onnx 1.23.2, onnxruntime 1.32.0, Python 3.11, Linux), whether the answers to four steps are those of
# onnxruntime, which agrees with onnx's reference, and whether they are onnxruntime's for direction="forward":
#   RNN, GRU, LSTM                             onnxruntime's   of forward
#   forward                                    yes             yes
#   reverse                                    no              yes
#   reverse half of bidirectional              yes             no
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'tract==0.23.9' 'onnx==1.23.2' 'onnxruntime==1.32.0' \
    'numpy==2.4.6'

cat > reverse.py <<'PY'
import numpy as np
import onnx
import onnxruntime
import tract
from onnx.reference import ReferenceEvaluator

STEPS, INPUTS, HIDDEN = 4, 3, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def model(operator, direction):
    """A layer whose halves, if there are two, have the same weights."""
    halves, gates = 2 if direction == "bidirectional" else 1, GATES[operator]
    rng = np.random.default_rng(0)
    sizes = {"W": (gates * HIDDEN, INPUTS), "R": (gates * HIDDEN, HIDDEN)}
    weights = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    encoder (float[{STEPS}, 1, {INPUTS}] x) => (float[{STEPS}, {halves}, 1, {HIDDEN}] y, float[{halves}, 1, {HIDDEN}] h)
    {{ y, h = {operator}<hidden_size = {HIDDEN}, direction = "{direction}">(x, W, R) }}"""
    parsed = onnx.parser.parse_model(text)
    for name, value in weights.items():
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(np.stack([value] * halves), name))
    onnx.checker.check_model(parsed, full_check=True)
    return parsed


def by_onnxruntime(proto, x):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})


def by_reference(proto, x):
    return ReferenceEvaluator(proto).run(None, {"x": x})


def by_tract(proto, x):
    onnx.save(proto, "encoder.onnx")
    return [output.to_numpy() for output in tract.onnx().load("encoder.onnx").into_model().into_runnable().run([x])]


def same(these, those):
    return "yes" if all(np.allclose(a, b, atol=1e-5) for a, b in zip(these, those, strict=True)) else "no"


def last_half(outputs):
    """Of a layer with two halves, what the second one gives."""
    y, h = outputs
    return [y[:, -1:], h[-1:]]


x = np.random.default_rng(1).normal(size=(STEPS, 1, INPUTS)).astype(np.float32)
for operator in GATES:
    forward = by_onnxruntime(model(operator, "forward"), x)
    for direction in "forward", "reverse", "bidirectional":
        proto = model(operator, direction)
        right = last_half(by_onnxruntime(proto, x))
        # onnx's reference has no bidirectional recurrent operators
        assert direction == "bidirectional" or same(by_reference(proto, x), right) == "yes"
        seen = last_half(by_tract(proto, x))
        print(f"{operator}, {direction}: {same(seen, right)}, {same(seen, forward)}")
PY
env/bin/python reverse.py | tee seen
diff seen - <<'EXPECTED'
RNN, forward: yes, yes
RNN, reverse: no, yes
RNN, bidirectional: yes, no
GRU, forward: yes, yes
GRU, reverse: no, yes
GRU, bidirectional: yes, no
LSTM, forward: yes, yes
LSTM, reverse: no, yes
LSTM, bidirectional: yes, no
EXPECTED
