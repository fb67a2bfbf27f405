"""Checks many clips: files in parallel processes, a recipe's clips after its edits."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from math import isfinite
from pathlib import Path

from pretrain.characters.character import load_character
from pretrain.motion.clip import ClipError
from pretrain.motion.files import find_files, is_recipe, load_clips
from pretrain.motion.importers import read_clip
from pretrain.motion.importers.amc import read_bytes
from pretrain.motion.measures import Measures
from pretrain.motion.verdict import BAD, Verdict, judge
from pretrain.motion.verdict_cache import VerdictCache

SPAWNING = 8  # files from which processes pay off
COLUMNS = {  # heading -> (width, text of a clip's measures)
    "s": (6, lambda m: f"{m.seconds:.2f}"),
    "ahead": (6, lambda m: f"{m.ahead:+.2f}"),
    "aside": (6, lambda m: f"{m.aside:+.2f}"),
    "turn": (6, lambda m: f"{m.turn:+.2f}"),
    "limits %": (9, lambda m: f"{100 * m.past_limits:.0f}"),
    "sunk cm": (8, lambda m: f"{100 * m.penetration:.1f}"),
    "float cm": (9, lambda m: f"{100 * m.floating:.1f}"),
    "skate cm": (9, lambda m: f"{100 * m.skate_most:.1f}"),
    "jump m/s": (9, lambda m: f"{m.jump:.1f}"),
    "seam": (5, lambda m: f"{m.seam:.2f}"),
    "fall": (6, lambda m: "-" if m.fall != m.fall else f"{m.fall:.1f}"),
    "hands m": (10, lambda m: f"{m.hand_low:.2f}-{m.hand_high:.2f}"),
}


def check(
    paths: Iterable[str], character: str, workers: int, cache_folder: Path | None = None
) -> Iterator[Verdict]:
    """A verdict on each clip, in the order of `paths`. Verdicts on files are cached in
    `cache_folder`; OSError where it is not writable."""
    check_one = partial(check_file, character=character, cache_folder=cache_folder)
    for path in paths:
        if is_recipe(path):
            yield from check_recipe(path, character)
            continue
        files = find_files(path)
        if workers < 2 or len(files) < SPAWNING:
            yield from map(check_one, files)
            continue
        pool = ProcessPoolExecutor(workers, initializer=_leave_interrupts_to_parent)
        try:
            yield from pool.map(check_one, files, chunksize=4)
        finally:
            pool.shutdown(cancel_futures=True)


def check_recipe(path: str, character: str) -> Iterator[Verdict]:
    """A verdict on each clip of a recipe, or `bad` with the reason where one cannot be read."""
    try:
        clips = load_clips(path, character)
    except ClipError as error:
        yield Verdict(Path(path).name, BAD, (str(error),))
        return
    yield from map(judge, clips)


def _leave_interrupts_to_parent() -> None:
    """On Ctrl-C a worker finishes its clip; the parent process submits no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def check_file(file: Path, character: str, cache_folder: Path | None = None) -> Verdict:
    """The verdict on one file, `bad` with the reason where it cannot be read."""
    try:
        data = read_bytes(file)
    except (ClipError, OSError) as error:
        return Verdict(file.name, BAD, (str(error),))
    if cache_folder is None:
        return check_bytes(data, file.name, character)
    cache = VerdictCache(cache_folder, character)
    verdict = cache.load(file.name, data)
    if verdict is None:
        verdict = check_bytes(data, file.name, character)
        cache.store(file.name, data, verdict)
    return verdict


def check_bytes(data: bytes, name: str, character: str) -> Verdict:
    """The verdict on the content of the file `name`."""
    try:
        return judge(read_clip(data, name, load_character(character).skeleton))
    except ClipError as error:
        return Verdict(name, BAD, (str(error),))


def to_json(verdicts: list[Verdict]) -> str:
    """A list of objects; null for a measure that a clip does not have."""
    rows = [asdict(verdict) for verdict in verdicts]
    for row in rows:
        for key, value in (row["measures"] or {}).items():
            if isinstance(value, float) and not isfinite(value):
                row["measures"][key] = None
    return json.dumps(rows, indent=1, allow_nan=False)


def table(verdicts: list[Verdict]) -> str:
    """One line per clip, then the advice on clips that have any."""
    width = max(len(verdict.name) for verdict in verdicts)
    heading = "".join(f"{name:>{size}}" for name, (size, _) in COLUMNS.items())
    lines = [f"{'clip':<{width}} {heading}  verdict"]
    lines += [f"{v.name:<{width}} {_cells(v.measures)}  {v.verdict}" for v in verdicts]
    for verdict in verdicts:
        if verdict.advice:
            lines.append(f"\n{verdict.name}:")
            lines += (f"  {line}" for line in verdict.advice)
    return "\n".join(lines)


def _cells(measures: Measures | None) -> str:
    if measures is None:
        return "".join(f"{'-':>{size}}" for size, _ in COLUMNS.values())
    return "".join(f"{fill(measures):>{size}}" for size, fill in COLUMNS.values())
