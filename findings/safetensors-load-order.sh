#!/usr/bin/env bash
# safetensors 0.8.0: load, of bytes, gives the tensors in another order at each call; load_file gives one order.
#
# Both return a dict of the same names and numbers, so one would guess that they differ in where the bytes come from. A
# dict keeps an order, and torch.load and numpy.load give the one that was saved. What goes over the values, as a
# parameter vector for an evolution strategy, a checksum over the weights or a list of layers, is another at each call
# of load, even within a process. load_file gives the order of the file, which is by type and name and not that of
# saving: "layer 10" stands before "layer 2". The documentation names no order. In the source: load in
# safetensors/numpy.py and torch.py, which goes over what deserialize returns.
#
# Seen (Python 3.11, Linux), of a policy of 12 layers that is read 5 times, the number of different orders, the number
# of different vectors that the joined values make, and whether the first order is that of saving:
#   numpy.load         1   1   yes
#   load_file          1   1   no
#   load               5   5   no
#   load, by name      1   1   yes
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'safetensors==0.8.0' 'numpy==2.4.6'

cat > order.py <<'PY'
import numpy as np
from safetensors.numpy import load, load_file, save_file

saved = {f"layer {index}": np.full(3, index, np.float32) for index in range(12)}
np.savez("policy.npz", **saved)
save_file(saved, "policy.safetensors")
with open("policy.safetensors", "rb") as file:
    content = file.read()


def by_name():
    """The tensors of load, in the order in which they were saved."""
    tensors = load(content)
    return {name: tensors[name] for name in saved}


def show(name, read):
    """Print how many orders and vectors five calls give, and whether the first has the order of saving."""
    calls = [dict(read()) for _ in range(5)]
    orders = {tuple(call) for call in calls}
    vectors = {np.concatenate(list(call.values())).tobytes() for call in calls}
    print(f"{name}: {len(orders)} {len(vectors)} {'yes' if list(calls[0]) == list(saved) else 'no'}")


show("numpy.load", lambda: np.load("policy.npz"))
show("load_file", lambda: load_file("policy.safetensors"))
show("load", lambda: load(content))
show("load, by name", by_name)
PY
env/bin/python order.py | tee seen
diff seen - <<'EXPECTED'
numpy.load: 1 1 yes
load_file: 1 1 no
load: 5 5 no
load, by name: 1 1 yes
EXPECTED
