#!/usr/bin/env bash
# flax 0.12.8: from_bytes(target, bytes) checks the names against the target, and neither shapes nor types.
#
# The target is a tree of arrays as the model has them, and a missing or another name raises ValueError; so one would
# guess that it is a template, as the model is for torch's load_state_dict, which refuses a tensor of another shape. Of
# each array only the place is used: what was saved comes back in its own shape and type. A module that has declared its
# parameter refuses it when it is applied. Whatever else is kept beside the parameters does not: the running mean and std
# of the observations, a log std, action scales. Statistics of one number, as a test environment has, are then broadcast
# over all 69 observations, and a file of float32 turns what the target holds in float64 into float32.
# In the source: from_state_dict of flax/serialization.py, which returns an array as it was saved.
#
# Seen (Python 3.11, Linux; jax 0.10.2 on the CPU), of statistics that are restored into a target of 69 numbers in
# float64, what comes back, and the shape of 2 observations that are normalized with it:
#   saved: 69 in float64     (69,) float64    (2, 69)
#   saved: 1 in float32      (1,) float32     (2, 69)
#   saved under other names  ValueError
#   torch, saved: 1          RuntimeError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'flax==0.12.8' 'jax==0.10.2' 'numpy==2.4.6' 'torch==2.13.0'

cat > restore.py <<'PY'
import numpy as np
import torch
from flax.serialization import from_bytes, to_bytes

target = {"mean": np.zeros(69), "std": np.ones(69)}
observations = np.full((2, 69), 3.0)


def restore(saved):
    """What from_bytes makes of `saved`, and the shape of the observations after it has normalized them."""
    try:
        restored = from_bytes(target, to_bytes(saved))
    except ValueError as error:
        return type(error).__name__
    normalized = (observations - restored["mean"]) / restored["std"]
    return f"{restored['std'].shape} {restored['std'].dtype} {normalized.shape}"


one = np.full(1, 2.0, np.float32)
print("saved, 69 in float64:", restore({"mean": np.zeros(69), "std": np.ones(69)}))
print("saved, 1 in float32:", restore({"mean": one, "std": one}))
print("saved under other names:", restore({"mean": one, "var": one}))

module = torch.nn.Module()
module.register_buffer("std", torch.ones(69))
try:
    module.load_state_dict({"std": torch.ones(1)})
    print("torch, saved 1: accepted")
except RuntimeError as error:
    print("torch, saved 1:", type(error).__name__)
PY
env/bin/python restore.py | tee seen
diff seen - <<'EXPECTED'
saved, 69 in float64: (69,) float64 (2, 69)
saved, 1 in float32: (1,) float32 (2, 69)
saved under other names: ValueError
torch, saved 1: RuntimeError
EXPECTED
