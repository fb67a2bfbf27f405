"""The motion importers and the verdicts of `check` under changed files: how many are read, how many
refused, and what fails.

python -m benchmarks.fuzz_clips inputs=100000 seed=0 [formats=mimickit,poselib]

A small file of each format, generated as in the tests, is changed at random: bytes, numbers, names
and lengths, in 3 of 10 only digits, so that a text stays readable; in zips also the entries, with
new checksums. A failure is any exception but ClipError, a message that does not begin with the
file's name, an input that takes over 5 s, or one that raises the peak of memory by over 1 GiB; each
is printed with its number. The exit status is 1 where there is one.
"""

from __future__ import annotations

import io
import random
import resource
import sys
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.clip_files import formats
from benchmarks.clip_files.human_rigs import bvh_of, deepmimic, human_amc, standing
from pretrain.characters.character import load_character
from pretrain.characters.skeleton import Skeleton
from pretrain.cli import program
from pretrain.motion.clip import ClipError, MotionClip, at_rate
from pretrain.motion.dataset import EVERYDAY
from pretrain.motion.importers import npz, read_clip
from pretrain.motion.verdict import judge
from pretrain.options import parse_int, parse_options

LONGEST = 5.0  # s
MAX_MEMORY = 1 << 20  # KiB by which one input may raise the peak
NAME = "clip"
TOKENS = (
    b"nan inf -1 0 1e309 1e-320 99999999999 2147483647 4294967295 , . \xff \x00 { } ( ) [ ] ' \" "
    b"builtins.print root Hips upper TRUE False None <f8 |O"
).split()
MAKERS: dict[str, Callable[[MotionClip], bytes]] = {
    "deepmimic": deepmimic,
    "bvh": bvh_of,
    "amc": human_amc,
    "mimickit": formats.mimickit,
    "poselib": lambda clip: formats.npy(formats.poselib_document(clip)),
    "npz": npz.write,
    "isaac_lab": formats.isaac_lab,
    "amass": lambda clip: formats.smpl(len(clip)),
    "protomotions": lambda clip: formats.protomotions(*standing()),
    "table": lambda clip: (",".join(["0.25"] * 36) + "\n").encode(),
}


@dataclass
class Outcome:
    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0  # s


def fuzz(formats: list[str], inputs: int, seed: int) -> Outcome:
    """Reads `inputs` changed files, the formats in turn."""
    skeleton = load_character("humanoid").skeleton
    clip = _short_clip(skeleton)
    plain = {name: MAKERS[name](clip) for name in formats}
    generator = random.Random(seed)
    outcome = Outcome()
    for number in range(inputs):
        name = formats[number % len(formats)]
        data = change(plain[name], generator)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        failure = _read(data, name, skeleton, outcome)
        took = time.perf_counter() - started
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        outcome.slowest = max(outcome.slowest, took)
        if took > LONGEST or grown > MAX_MEMORY:
            failure = f"{failure}took {took:.1f} s and {grown >> 10} MiB"
        if failure:
            outcome.failures.append(f"input {number} ({name}): {failure}")
    return outcome


def change(data: bytes, generator: random.Random) -> bytes:
    """`data` with one to four changes; of zips, 7 in 10 are changed in one entry instead."""
    if data.startswith(b"PK") and generator.random() < 0.7:
        return _change_entry(data, generator)
    changed = bytearray(data)
    once = _change_digits if generator.random() < 0.3 else _change_once
    for _ in range(generator.randint(1, 4)):
        once(changed, generator)
    return bytes(changed)


def _change_entry(data: bytes, generator: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    name = generator.choice(list(entries))
    if generator.random() < 0.1:
        del entries[name]
    else:
        entries[name] = change(entries[name], generator)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    return buffer.getvalue()


def _change_digits(data: bytearray, generator: random.Random) -> None:
    """Change up to 40 digits: a text stays a text, with other numbers."""
    digits = [at for at, byte in enumerate(data) if byte in b"0123456789"]
    for at in generator.sample(digits, min(len(digits), generator.randint(1, 40))):
        data[at] = generator.choice(b"0123456789")


def _change_once(data: bytearray, generator: random.Random) -> None:
    if not data:
        data += generator.choice(TOKENS)
    reach = len(data) if generator.random() < 0.5 else min(len(data), 400)  # heads matter most
    at = generator.randrange(reach)
    kind = generator.randrange(6)
    size = generator.randint(1, 40)
    if kind == 0:
        data[at] = generator.randrange(256)
    elif kind == 1:
        data[at] ^= 1 << generator.randrange(8)
    elif kind == 2:
        del data[at : at + size]
    elif kind == 3:
        data[at:at] = data[at : at + size]
    elif kind == 4:
        token = generator.choice(TOKENS)
        data[at : at + generator.choice((0, len(token)))] = token
    else:
        other = generator.randrange(len(data))
        data[at : at + size] = data[other : other + size]


def _read(data: bytes, name: str, skeleton: Skeleton, outcome: Outcome) -> str:
    """The failure, or nothing."""
    try:
        clip = read_clip(data, NAME, skeleton)
        judge(clip)
    except ClipError as error:
        outcome.refused[name] += 1
        return "" if str(error).startswith(f"{NAME}: ") else f"no file name in: {error}"
    except Exception:
        return traceback.format_exc(limit=-3)
    outcome.read[name] += 1
    return "" if np.isfinite(clip.states.flatten()).all() else "read, and not finite"


def _short_clip(skeleton: Skeleton) -> MotionClip:
    file = EVERYDAY / "cmu_49_01.npz"
    clip = read_clip(file.read_bytes(), file.name, skeleton)
    return at_rate(clip, np.arange(12) / clip.fps, clip.fps)


def main(arguments: list[str]) -> int:
    """The exit status."""
    try:
        defaults = {"inputs": "10000", "seed": "0", "formats": ",".join(MAKERS)}
        options = parse_options(arguments, defaults)
        inputs = parse_int(options, "inputs", 1)
        seed = parse_int(options, "seed", 0)
        formats = options["formats"].split(",")
        if unknown := [name for name in formats if name not in MAKERS]:
            known = ", ".join(MAKERS)
            raise ValueError(f"formats={unknown[0]}: no such format; there are: {known}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    warnings.simplefilter("error")
    started = time.monotonic()
    outcome = fuzz(formats, inputs, seed)
    for failure in outcome.failures:
        print(failure)
    print(f"{inputs} inputs of seed {seed} in {time.monotonic() - started:.0f} s")
    for name in formats:
        print(f"{name}: {outcome.read[name]} read, {outcome.refused[name]} refused")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"slowest {outcome.slowest:.2f} s, peak memory {peak} MiB")
    print("failures:", len(outcome.failures))
    return int(bool(outcome.failures))


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
