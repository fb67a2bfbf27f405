"""Adam is bit-identical to torch's, without its compiler."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy

import pytest
import torch
from torch import nn

from pretrain.rl.adam import Adam


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 5))


def learn(net: nn.Module, optimizer, steps: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(32, 30, generator=rng)).square().mean().backward()
        optimizer.step()


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_adam_steps_match_torch(net):
    twin = deepcopy(net)
    learn(net, Adam(net.parameters(), 1e-3), 20, seed=1)
    learn(twin, torch.optim.Adam(twin.parameters(), 1e-3, fused=True), 20, seed=1)
    assert same(net, twin)


def test_adam_resumes_from_its_own_state_and_from_torchs(net):
    twin = deepcopy(net)
    third = deepcopy(net)
    optimizer = Adam(net.parameters(), 2e-3)
    torchs = torch.optim.Adam(twin.parameters(), 2e-3, fused=True)
    learn(net, optimizer, 5, seed=1)
    learn(twin, torchs, 5, seed=1)
    third.load_state_dict(net.state_dict())
    for state in (deepcopy(optimizer.state_dict()), torchs.state_dict()):
        copy = deepcopy(third)
        continued = Adam(copy.parameters(), 1.0)
        continued.load_state_dict(state)
        learn(copy, continued, 5, seed=2)
        again = deepcopy(third)
        original = Adam(again.parameters(), 1.0)
        original.load_state_dict(deepcopy(optimizer.state_dict()))
        learn(again, original, 5, seed=2)
        assert same(copy, again)
    learn(net, optimizer, 5, seed=2)
    assert same(net, copy)


def test_a_changed_rate_changes_the_next_step(net):
    twin = deepcopy(net)
    optimizer = Adam(net.parameters(), 1e-3)
    optimizer.lr = 0.0
    learn(net, optimizer, 3, seed=1)
    assert same(net, twin)


def test_a_parameter_without_a_gradient_is_left_alone(net):
    twin = deepcopy(net)
    optimizer = Adam(net.parameters(), 1e-3)
    net[0].requires_grad_(False)
    learn(net, optimizer, 3, seed=1)
    assert same(net[0], twin[0])
    assert not same(net[2], twin[2])
    optimizer.zero_grad()
    optimizer.step()  # of no gradient at all


@pytest.mark.parametrize("sizes", [(30, 32), (31, 64)])
def test_the_state_of_another_network_is_refused(net, sizes):
    other = nn.Sequential(nn.Linear(*sizes), nn.ReLU(), nn.Linear(sizes[1], 5))
    with pytest.raises(RuntimeError, match="the state of a parameter of shape"):
        Adam(net.parameters(), 1e-3).load_state_dict(Adam(other.parameters(), 1e-3).state_dict())


def test_the_state_of_fewer_parameters_is_refused(net):
    state = Adam(net[0].parameters(), 1e-3).state_dict()
    with pytest.raises(RuntimeError, match="the state of 2 parameters, not 4"):
        Adam(net.parameters(), 1e-3).load_state_dict(state)


def test_learning_does_not_import_torchs_compiler():
    lines = (
        "import sys, torch",
        "from pretrain.rl.adam import Adam",
        "net = torch.nn.Linear(3, 3)",
        "optimizer = Adam(net.parameters(), 1e-3)",
        "net(torch.ones(3)).sum().backward()",
        "optimizer.step()",
        "sys.exit('torch._dynamo' in sys.modules)",
    )
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)], check=False).returncode == 0
