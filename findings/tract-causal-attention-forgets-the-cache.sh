#!/usr/bin/env bash
# tract 0.23.9: with cached keys, an ONNX Attention that is causal looks at the oldest step instead of all so far.
#
# In ONNX, is_causal lets query i see keys up to i + the number of cached ones, so the one new step of a policy with a
# cache sees all cached steps and itself: is_causal changes nothing there, and onnxruntime and onnx's reference agree.
# tract takes the file without a warning and aligns the triangle with the first key: the new step sees the oldest
# cached step alone, whatever came later, itself included. The cache that the node returns is right, and the whole
# sequence at once, as in a test without a cache, is right too.
#
# Seen (onnx 1.23.2, onnxruntime 1.32.0, opsets 23 and 24, Python 3.11, Linux), the values of the steps are 1, 2, 3 and
# 4, and all keys are the same, so an answer is the mean of the values that a query sees:
#                                      onnxruntime        tract
#   four steps, no cache               1 1.5 2 2.5        1 1.5 2 2.5
#   fourth step, three cached, causal  2.5                1
#   two steps, two cached, causal      2 2.5              1 1.5
#   fourth step, three cached          2.5                2.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'tract==0.23.9' 'onnx==1.23.2' 'onnxruntime==1.32.0' \
    'numpy==2.4.6'

cat > attention.py <<'PY'
import numpy as np
import onnx
import onnxruntime
import tract
from onnx.reference import ReferenceEvaluator

VALUES = [1.0, 2.0, 3.0, 4.0]


def model(opset, new, cached, causal):
    """An attention of one head of size 1, for so many new and cached steps."""
    shape, past, whole = f"float[1, 1, {new}, 1]", f"float[1, 1, {cached}, 1]", f"float[1, 1, {new + cached}, 1]"
    inputs, outputs = f"{shape} q, {shape} k, {shape} v", f"{shape} y"
    arguments, results = "q, k, v", "y"
    if cached:
        inputs += f", {past} past_k, {past} past_v"
        outputs += f", {whole} all_k, {whole} all_v"
        arguments += ', "", past_k, past_v'
        results += ", all_k, all_v"
    text = f"""<ir_version: 11, opset_import: ["": {opset}]>
    attention ({inputs}) => ({outputs}) {{ {results} = Attention<is_causal = {causal}>({arguments}) }}"""
    parsed = onnx.parser.parse_model(text)
    onnx.checker.check_model(parsed, full_check=True)
    return parsed


def by_onnxruntime(proto, feeds):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def by_reference(proto, feeds):
    return ReferenceEvaluator(proto).run(None, feeds)


def by_tract(proto, feeds):
    onnx.save(proto, "attention.onnx")
    runnable = tract.onnx().load("attention.onnx").into_model().into_runnable()
    return [output.to_numpy() for output in runnable.run(list(feeds.values()))]


def steps(values):
    return np.array(values, np.float32).reshape(1, 1, -1, 1)


def show(name, new, causal):
    """Print what the queries of the last steps see, the steps before being in the cache."""
    cached = len(VALUES) - new
    feeds = {"q": steps([1] * new), "k": steps([1] * new), "v": steps(VALUES[cached:])}
    if cached:
        feeds |= {"past_k": steps([1] * cached), "past_v": steps(VALUES[:cached])}
    for compute in by_onnxruntime, by_reference, by_tract:
        answers = []
        for opset in 23, 24:
            answer, *cache = compute(model(opset, new, cached, causal), feeds)
            assert not cache or np.array_equal(cache[1].ravel(), VALUES)
            answers.append(" ".join(f"{number:g}" for number in np.round(answer.ravel(), 4)))
        assert answers[0] == answers[1]
        print(f"{name}, {compute.__name__[3:]}: {answers[0]}")


show("no cache, causal", 4, 1)
show("three cached, causal", 1, 1)
show("two cached, causal", 2, 1)
show("three cached", 1, 0)
PY
env/bin/python attention.py | tee seen
diff seen - <<'EXPECTED'
no cache, causal, onnxruntime: 1 1.5 2 2.5
no cache, causal, reference: 1 1.5 2 2.5
no cache, causal, tract: 1 1.5 2 2.5
three cached, causal, onnxruntime: 2.5
three cached, causal, reference: 2.5
three cached, causal, tract: 1
two cached, causal, onnxruntime: 2 2.5
two cached, causal, reference: 2 2.5
two cached, causal, tract: 1 1.5
three cached, onnxruntime: 2.5
three cached, reference: 2.5
three cached, tract: 2.5
EXPECTED
