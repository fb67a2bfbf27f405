"""The replay buffer keeps the latest rows, and is restored from a snapshot."""

from __future__ import annotations

import torch

from pretrain.rl.replay import Replay


def replay() -> Replay:
    return Replay(10, seen=torch.zeros(1), label=torch.tensor(0))


def test_the_latest_rows_are_kept_whole(rng):
    kept = replay()
    assert len(kept.sample(5, rng)["seen"]) == 0
    for rows in (torch.arange(7), torch.arange(7, 14)):
        kept.add(seen=rows[:, None].float(), label=rows)
    assert sorted(kept.rows["label"].tolist()) == list(range(4, 14))
    drawn = kept.sample(50, rng)
    assert torch.equal(drawn["seen"][:, 0], drawn["label"].float())


def test_restored_buffer_continues_identically():
    kept = replay()
    other = replay()
    kept.add(seen=torch.rand(7, 1), label=torch.arange(7))
    other.restore(kept.snapshot())
    for each in (other, kept):
        each.add(seen=torch.full((5, 1), 99.0), label=torch.arange(5))
    assert (other.filled, other.next) == (kept.filled, kept.next)
    assert all(torch.equal(other.rows[name], x) for name, x in kept.rows.items())
