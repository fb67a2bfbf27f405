"""Random pipelined requests, cut at any byte, with and without keys: each gets what its own key
allows."""

import asyncio

import pytest

from benchmarks.request_sequences import make_world, run_sequences


@pytest.mark.parametrize("seed", [0, 1])
def test_replies_match_their_requests_in_random_sequences(tmp_path, seed):
    counts = asyncio.run(run_sequences(make_world(tmp_path), 1500, seed))
    assert counts.total() >= 1500
    assert set(counts) == {200, 401, 403, 422}
