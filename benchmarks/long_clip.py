"""How much memory one long clip takes, from its file to the published card.

    python -m benchmarks.long_clip                     60 minutes; a quarter of an hour
    python -m benchmarks.long_clip --minutes 10 samples=4096

A walk of the bundled clips is played to and fro until it is long enough, and `pretrain.train` with
preset=toy trains on it and publishes, with the allocator's settings of the Makefile."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from pretrain.characters.character import load_character
from pretrain.motion.clip import CONTROL_RATE, MotionClip
from pretrain.motion.files import load_clips
from pretrain.motion.importers.npz import write

ALLOCATOR = {  # as in the Makefile: freed memory stays with the process
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "MALLOC_TOP_PAD_": "67108864",
}


def play_to_and_fro(clip: MotionClip, frames: int) -> MotionClip:
    """`clip` forwards, backwards, and so on, for `frames` frames."""
    last = len(clip) - 1
    order = last - np.abs(np.arange(frames) % (2 * last) - last)
    return replace(
        clip,
        root_pos=clip.root_pos[order],
        root_rot=clip.root_rot[order],
        joint_rot={body: turns[order] for body, turns in clip.joint_rot.items()},
    )


def write_recipe(folder: Path, minutes: float) -> Path:
    """A recipe of one clip of `minutes`, and its file."""
    skeleton = load_character("humanoid").skeleton
    walk = next(clip for clip in load_clips("everyday", skeleton.name) if clip.name == "walk")
    frames = round(minutes * 60 * CONTROL_RATE)
    long = play_to_and_fro(walk.resampled(CONTROL_RATE), frames)
    (folder / "long.npz").write_bytes(write(long))
    recipe = folder / "long.yaml"
    text = "name: long\ncharacter: humanoid\nmirror: false\nmotions:\n  - {file: long.npz}\n"
    recipe.write_text(text, encoding="utf-8")
    return recipe


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("settings", nargs="*", help="key=value of pretrain.train")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        recipe = write_recipe(folder, chosen.minutes)
        places = (f"motions={recipe}", f"runs={folder / 'runs'}", f"store={folder / 'store'}")
        command = [sys.executable, "-m", "pretrain.train", "preset=toy", *places, *chosen.settings]
        started = time.monotonic()
        ended = subprocess.run(command, env=os.environ | ALLOCATOR, check=False)
        found = {
            "minutes_of_clip": chosen.minutes,
            "exit_status": ended.returncode,
            "seconds": round(time.monotonic() - started),
            "peak_gib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20,
        }
    print(json.dumps(found, indent=2))
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
