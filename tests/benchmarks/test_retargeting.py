"""The comparison of retargeting with an inverse-kinematics loop."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest

from benchmarks import retargeting
from benchmarks.retargeting import main, read_raw, solve_by_mink
from pretrain.motion.dataset import EVERYDAY
from pretrain.motion.editing.time import frames
from pretrain.motion.files import load_file


def test_missing_mink_error_has_the_install_command(monkeypatch, capsys):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(retargeting.importlib, "import_module", missing)
    assert main(["repeats=1"]) == 2
    assert "'mink': python -m pip install" in capsys.readouterr().err


def test_a_clip_on_our_skeleton_is_refused(skeleton):
    with pytest.raises(ValueError, match=r"cmu_02_01\.npz: its skeleton is ours"):
        read_raw(EVERYDAY / "cmu_02_01.npz", skeleton)


def test_default_walk_is_read_on_another_rig(skeleton):
    raw = read_raw(None, skeleton)
    assert raw.joints[0] == "Hips"
    assert len(raw) == 163


def test_mink_loop_converges_to_its_targets():
    mink = pytest.importorskip("mink", reason="no mink here: benchmarks/retargeting.py")
    walk = load_file(EVERYDAY / retargeting.WALK, "humanoid")
    loop = solve_by_mink(mink, frames(walk, np.arange(10)))
    assert loop.error < 0.002
    assert loop.seconds > 0


def test_the_figures_are_one_line_of_json(monkeypatch, capsys):
    loop = retargeting.Loop(seconds=2.0, iterations=5.0, error=0.001)
    monkeypatch.setattr(importlib, "import_module", lambda name: None)
    monkeypatch.setattr(retargeting, "solve_by_mink", lambda mink, clip: loop)
    assert main(["repeats=1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mink_frames_per_s"] == 81.5
    assert found["ratio"] == pytest.approx(found["retarget_frames_per_s"] / 81.5, rel=0.01)
