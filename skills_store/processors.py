"""How many processors this process may use: its affinity and, in a container, its CPU quota."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")  # "QUOTA PERIOD", or "max PERIOD"


def count_processors(cpu_max: Path = CPU_MAX) -> int:
    """At least 1. `os.cpu_count` would count those of the whole machine."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = _read_quota(cpu_max)
    return allowed if quota is None else max(1, min(allowed, ceil(quota)))


def _read_quota(path: Path) -> float | None:
    """Processors that the control group may use; None where it is not limited, or there is none."""
    try:
        quota, period = path.read_text(encoding="utf-8").split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
