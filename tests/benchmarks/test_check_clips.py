"""The benchmark of check: its clips, and the cache between its two checks."""

from __future__ import annotations

import numpy as np

from benchmarks.check_clips import time_check, write_clips
from pretrain.motion.check import check
from pretrain.motion.verdict import BAD


def test_benchmark_clips_are_of_two_formats_and_not_bad(tmp_path):
    folder = tmp_path / "clips"
    folder.mkdir()
    frames = write_clips(folder, 6, np.random.default_rng(0))
    assert sorted(file.suffix for file in folder.iterdir()) == [".bvh"] * 3 + [".npz"] * 3
    verdicts = list(check([str(folder)], "humanoid", 1))
    assert BAD not in {verdict.verdict for verdict in verdicts}
    measured = [verdict.measures for verdict in verdicts if verdict.measures]
    lengths = [round(m.seconds * m.rate) + 1 for m in measured]
    assert sum(lengths) == frames
    time_check(folder, 1, tmp_path / "kept")
    assert len(list((tmp_path / "kept").rglob("*.json"))) == 6
