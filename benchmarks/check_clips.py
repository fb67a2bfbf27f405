"""How long `python -m pretrain.motion check` takes over many clips, and over them once more.

    python -m benchmarks.check_clips                    1,000 clips, a process a core
    python -m benchmarks.check_clips clips=200 workers=1

The clips are random parts, 1 to 3 s long, of the bundled ones; every second one is written as a BVH
file of another rig, which has to be retargeted. The second check uses the cached verdicts of the
first. `cpu_seconds` is CPU time, which depends less on the other load of the machine."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.clip_files.human_rigs import bvh_of
from pretrain.cli import program
from pretrain.motion.check import check
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.dataset import EVERYDAY
from pretrain.motion.editing.time import frames
from pretrain.motion.files import load_file
from pretrain.motion.importers import npz
from pretrain.options import parse_int, parse_options
from skills_store.processors import count_processors

LENGTHS = (1.0, 3.0)  # s


def write_clips(folder: Path, clips: int, rng: np.random.Generator) -> int:
    """Write `clips` files to `folder`; returns their number of frames."""
    takes = [load_file(file, "humanoid") for file in sorted(EVERYDAY.glob("*.npz"))]
    written = 0
    for i in range(clips):
        take = takes[i % len(takes)]
        drawn = round(rng.uniform(*LENGTHS) * CONTROL_RATE)
        length = min(len(take), drawn)
        start = int(rng.integers(len(take) - length + 1))
        part = frames(take, np.arange(start, start + length))
        write, suffix = (bvh_of, "bvh") if i % 2 else (npz.write, "npz")
        (folder / f"{i:06}.{suffix}").write_bytes(write(part))
        written += length
    return written


def time_check(folder: Path, workers: int, kept: Path) -> tuple[float, float]:
    """Wall-clock seconds and CPU seconds."""
    before = _cpu_seconds()
    started = time.monotonic()
    for _ in check([str(folder)], "humanoid", workers, kept):
        pass
    return time.monotonic() - started, _cpu_seconds() - before


def _cpu_seconds() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    usages = [resource.getrusage(kind) for kind in kinds]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main(arguments: list[str]) -> int:
    """The exit status."""
    try:
        defaults = {"clips": "1000", "workers": str(count_processors()), "seed": "0"}
        options = parse_options(arguments, defaults)
        clips = parse_int(options, "clips", 1)
        workers = parse_int(options, "workers", 1)
        rng = np.random.default_rng(parse_int(options, "seed", 0))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "clips"
        folder.mkdir()
        written = write_clips(folder, clips, rng)
        first, first_cpu = time_check(folder, workers, Path(scratch) / "kept")
        again, again_cpu = time_check(folder, workers, Path(scratch) / "kept")
    found = {
        "clips": clips,
        "frames": written,
        "workers": workers,
        "seconds": round(first, 1),
        "cpu_seconds": round(first_cpu, 1),
        "again_seconds": round(again, 1),
        "again_cpu_seconds": round(again_cpu, 1),
    }
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
