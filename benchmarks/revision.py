"""Another revision of the project, checked out beside this one, and one program run in both by
turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]


@contextmanager
def check_out(revision: str) -> Iterator[Path]:
    """The files of `revision` in a worktree of its own, removed at the end. Raises ValueError for
    an unknown revision."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        added = _git("worktree", "add", "--detach", str(tree), revision)
        if added.returncode:
            reason = added.stderr.strip().rpartition("\n")[2]
            raise ValueError(f"--against {revision}: {reason}")
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
    )


def run_json(tree: Path, module: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The JSON object that `module` of the revision in `tree` prints in its last line, and
    `peak_memory_mb` of the process. Raises RuntimeError if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], cwd=tree, env=environment, stdout=output
        )
        _, status, usage = os.wait4(process.pid, 0)
        output.seek(0)
        lines = output.read().splitlines()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{module} of {tree} ended with {process.returncode}")
    # on Linux in KiB
    return {**json.loads(lines[-1]), "peak_memory_mb": round(usage.ru_maxrss / 1024)}


def compare_medians(
    now: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]], keys: Sequence[str]
) -> dict[str, tuple[float, float, float]]:
    """Of each key: the median now, the median before, and the first over the second."""
    found: dict[str, tuple[float, float, float]] = {}
    for key in keys:
        ours = median(each[key] for each in now)
        theirs = median(each[key] for each in before)
        found[key] = (ours, theirs, round(ours / theirs, 3))
    return found
