"""Two revisions: running a program in another tree, and the ratio of medians."""

from __future__ import annotations

import pytest

from benchmarks.revision import compare_medians, run_json


def test_a_module_of_another_tree_is_run_and_its_last_line_read(tmp_path):
    (tmp_path / "prints.py").write_text(
        "import json, sys\nprint('first')\nprint(json.dumps({'arguments': sys.argv[1:]}))"
    )
    found = run_json(tmp_path, "prints", ["a=1"])
    assert found["arguments"] == ["a=1"]
    assert found["peak_memory_mb"] > 0


def test_failed_module_raises_with_its_name(tmp_path):
    (tmp_path / "fails.py").write_text("raise SystemExit(3)")
    with pytest.raises(RuntimeError, match=r"fails .* ended with 3"):
        run_json(tmp_path, "fails", [])


def test_an_outlier_does_not_change_the_ratio():
    now = [{"rate": rate} for rate in (20, 22, 900)]
    before = [{"rate": rate} for rate in (10, 11, 12)]
    assert compare_medians(now, before, ["rate"]) == {"rate": (22, 11, 2.0)}
