"""The MuJoCo backend: determinism, round trips, control, contacts and broken worlds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrain.sim.backend import Backend, make_backend

WORLDS = 16


def standing(humanoid, library, threads: int = 1) -> tuple[Backend, torch.Tensor]:
    backend = make_backend("mujoco", humanoid, WORLDS, threads)
    ids, times = library.sample(WORLDS, torch.Generator().manual_seed(0))
    state = library.at(ids, times)
    backend.place(torch.arange(WORLDS), state)
    return backend, state.joint_pos


def test_placed_state_is_read_back(humanoid, library, rng):
    backend = make_backend("mujoco", humanoid, WORLDS)
    state = library.at(*library.sample(WORLDS, rng))
    backend.place(torch.arange(WORLDS), state)
    torch.testing.assert_close(backend.state().flatten(), state.flatten(), atol=1e-5, rtol=0)


def test_no_world_explodes_under_random_targets(humanoid, library):
    """The drives are at their limits, so that only passive damping stabilizes the body."""
    backend, _ = standing(humanoid, library)
    lower = torch.tensor(humanoid.skeleton.lower)
    upper = torch.tensor(humanoid.skeleton.upper)
    rng = torch.Generator().manual_seed(0)
    for _ in range(150):
        broken = backend.advance(
            lower + (upper - lower) * torch.rand(WORLDS, len(lower), generator=rng)
        )
        assert not broken.any()
        assert backend.state().joint_vel.abs().max() < 60  # rad/s


def test_control_step_lasts_control_dt(humanoid, library):
    slow, targets = standing(humanoid, library)
    fast, _ = standing(replace(humanoid, control_dt=humanoid.control_dt / 2), library)
    slow.advance(targets)
    fast.advance(targets)
    assert not torch.equal(slow.state().flatten(), fast.state().flatten())
    fast.advance(targets)
    assert torch.equal(slow.state().flatten(), fast.state().flatten())


@pytest.mark.parametrize("threads", [2, 3])
def test_any_thread_count_gives_the_same_bits(humanoid, library, threads):
    one, targets = standing(humanoid, library)
    many, _ = standing(humanoid, library, threads)
    for _ in range(40):
        one.advance(targets)
        many.advance(targets)
    assert torch.equal(one.state().flatten(), many.state().flatten())


def test_a_restored_snapshot_goes_on_bit_for_bit(humanoid, library):
    backend, targets = standing(humanoid, library)
    for _ in range(10):
        backend.advance(targets)
    snapshot = backend.snapshot()
    runs = []
    for _ in range(2):
        backend.restore(snapshot)
        for _ in range(10):
            backend.advance(targets)
        runs.append(backend.state().flatten())
    assert torch.equal(*runs)


def test_nan_env_is_reported_and_others_are_unaffected(humanoid, library):
    healthy, targets = standing(humanoid, library)
    hurt, _ = standing(humanoid, library)
    bad = hurt.state()[3:4]
    hurt.place(torch.tensor([3]), bad.map(lambda x: x * float("nan")))
    for _ in range(5):
        healthy.advance(targets)
        broken = hurt.advance(targets)
    assert broken.nonzero()[:, 0].tolist() == [3]
    others = [i for i in range(WORLDS) if i != 3]
    assert torch.equal(healthy.state().flatten()[others], hurt.state().flatten()[others])


def test_pd_control_moves_joints_to_their_targets(humanoid, library):
    """Hold a pose: after half a second the joints are nearer to it than to a pose 0.3 rad away."""
    backend, _ = standing(humanoid, library)
    backend.place(
        torch.arange(WORLDS), library.at(torch.zeros(WORLDS, dtype=torch.long), torch.zeros(WORLDS))
    )
    elbow = humanoid.skeleton.hinges.index("right_elbow")
    targets = backend.state().joint_pos.clone()
    targets[:, elbow] += 0.5
    before = backend.state().joint_pos[:, elbow].clone()
    for _ in range(15):
        backend.advance(targets)
    moved = backend.state().joint_pos[:, elbow] - before
    torch.testing.assert_close(moved, torch.full((WORLDS,), 0.5), atol=0.15, rtol=0)


def test_a_lying_body_touches_with_more_than_its_feet(humanoid, library):
    backend, targets = standing(humanoid, library)
    state = backend.state()
    flat = torch.tensor([0.7071, 0.0, 0.7071, 0.0]).expand(WORLDS, 4)  # face down
    lying = state.map(lambda x: x.clone())
    backend.place(
        torch.arange(WORLDS),
        type(lying)(
            lying.root_pos * 0 + torch.tensor([0, 0, 0.15]),
            flat,
            lying.root_vel * 0,
            lying.root_ang_vel * 0,
            lying.joint_pos,
            lying.joint_vel * 0,
        ),
    )
    for _ in range(90):  # it bounces first
        backend.advance(targets)
    feet = torch.tensor(humanoid.skeleton.is_foot)
    assert (backend.touching() & ~feet).any(-1).all()


def test_a_push_moves_the_pushed_world_only(humanoid, library):
    still, targets = standing(humanoid, library)
    pushed, _ = standing(humanoid, library)
    pushed.push(torch.tensor([2]), "torso", torch.tensor([[500.0, 0.0, 0.0, 0.0, 0.0, 0.0]]))
    for _ in range(6):
        still.advance(targets)
        pushed.advance(targets)
    difference = (pushed.state().root_vel - still.state().root_vel)[:, 0]
    assert difference[2] > 0.5
    assert difference[:2].abs().max() == 0


def test_unknown_engine_lists_what_exists(humanoid):
    with pytest.raises(KeyError, match="mujoco"):
        make_backend("bullet", humanoid, 1)


def test_a_warning_of_the_engine_is_logged_and_writes_no_file(
    tmp_path, monkeypatch, humanoid, caplog
):
    monkeypatch.chdir(tmp_path)
    backend = make_backend("mujoco", humanoid, 1, 1)
    backend._views["qvel"][:] = np.inf
    assert backend.advance(torch.zeros(1, len(humanoid.kp))).tolist() == [True]
    assert "QVEL" in caplog.text
    assert list(tmp_path.iterdir()) == []
