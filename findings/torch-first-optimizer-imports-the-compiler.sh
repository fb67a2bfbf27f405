#!/usr/bin/env bash
# torch 2.13.0: making the first optimizer of a process imports torch's compiler, though nothing is compiled.
#
# `Optimizer.add_param_group`, `step` and `zero_grad` are wrapped so that torch.compile leaves them alone, and the wrapper
# imports torch._dynamo on its first call, whoever calls it: with it torch.distributed.tensor and sympy, some 800
# modules. A process that only learns pays for it in start-up and resident memory, and each worker of a pool pays again.
# Forward, backward, clip_grad_norm_ and AveragedModel import none of it. The functional form of the same optimizer
# (torch.optim.adam.adam with fused=True) steps to the same bits without it. In the source: torch/_compile.py.
#
# Seen (Python 3.11, Linux, CPU):
#   after backward and clip_grad_norm_     torch._dynamo not imported
#   after 20 functional steps of Adam      torch._dynamo not imported
#   after torch.optim.SGD([parameter])     torch._dynamo, torch.distributed.tensor, sympy; 72 MB more, 1.9 s
#   20 steps of torch.optim.Adam           the same bits as the functional ones
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0' 'numpy==2.4.6'

cat > optimizer.py <<'PY'
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.optim.adam import adam
from torch.optim.swa_utils import AveragedModel

COMPILER = ("torch._dynamo", "torch.distributed.tensor", "sympy")


def imported():
    return [name for name in COMPILER if name in sys.modules]


def resident():
    """MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 5))


def backward(net, rows):
    net.zero_grad()
    net(rows).square().mean().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)


torch.set_num_threads(1)
batches = torch.randn(20, 32, 30, generator=torch.Generator().manual_seed(1))
functional = network()
average = AveragedModel(functional)
backward(functional, batches[0])
average.update_parameters(functional)
print("after backward, clipping, averaging:", imported())
assert not imported()

parameters = list(functional.parameters())
means = [torch.zeros_like(p) for p in parameters]
squares = [torch.zeros_like(p) for p in parameters]
steps = [torch.zeros(()) for _ in parameters]
for rows in batches:
    backward(functional, rows)
    grads = [p.grad for p in parameters]
    with torch.no_grad():
        adam(
            parameters, grads, means, squares, [], steps,
            fused=True, amsgrad=False, beta1=0.9, beta2=0.999, lr=1e-3, weight_decay=0.0, eps=1e-8, maximize=False,
        )
print("after 20 functional steps:", imported())
assert not imported()

before, modules, start = resident(), len(sys.modules), time.monotonic()
torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1)
print(
    f"after the first optimizer: {imported()}, {len(sys.modules) - modules} modules, "
    f"{resident() - before:.0f} MB, {time.monotonic() - start:.1f} s"
)
assert imported() == list(COMPILER)
assert len(sys.modules) - modules > 300
assert resident() - before > 30

net = network()
optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
for rows in batches:
    backward(net, rows)
    optimizer.step()
same = all(torch.equal(a, b) for a, b in zip(net.parameters(), functional.parameters(), strict=True))
print("torch.optim.Adam makes the same steps:", same)
assert same
PY
env/bin/python optimizer.py
