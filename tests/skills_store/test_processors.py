"""The processor count respects the affinity and the control group's share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skills_store.processors import count_processors

ALLOWED = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("max 100000", ALLOWED),
        ("100000 100000", 1),
        ("50000 100000", 1),
        ("99900000 100000", ALLOWED),
        ("?", ALLOWED),
    ],
)
def test_the_share_of_a_control_group_bounds_the_count(
    tmp_path: Path, text: str, count: int
) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert count_processors(tmp_path / "cpu.max") == count


def test_without_a_control_group_the_affinity_counts(tmp_path: Path) -> None:
    assert count_processors(tmp_path / "none") == ALLOWED


def test_a_process_pinned_to_one_processor_counts_one() -> None:
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{core}}}); "
    code += "from skills_store.processors import count_processors; print(count_processors())"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "1"
