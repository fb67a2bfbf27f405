"""ASF/AMC: Acclaim's format, of CMU's originals. A take (.amc) needs its skeleton (.asf).

The skeleton's text precedes the take's: `find_skeleton` finds it beside the take's file; an upload
has both in one file. Values are assigned by bone name. A take has no rate: CMU's 120 frames/s are
assumed, with a warning. A trimmed take begins at any frame number."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import numpy as np

from pretrain.characters.rotations import conjugate, from_axis_angle, multiply
from pretrain.motion.clip import ClipError
from pretrain.motion.importers.asf import Asf, Bone, parse_asf
from pretrain.motion.importers.humanoid_frames import LONGEST
from pretrain.motion.raw import RawMotion

RATE = 120.0  # frames/s of CMU's takes
MAX_VALUES = 20_000_000
LARGEST = 1e6
SKELETON = b":bonedata"
TAKE = b":fully-specified"
LARGEST_FILE = 1 << 29  # bytes
HEAD = 2_000_000  # bytes, bound of a skeleton and a take's head


def recognize(data: bytes) -> bool:
    """Whether `data` is a take, a skeleton, or both in a row."""
    head = data[:4000].lower()
    return TAKE in head or (SKELETON in head and b":version" in head)


def read(data: bytes, name: str) -> RawMotion:
    """ClipError names the line of the skeleton, or the frame and bone of the take."""
    text = data.decode("utf-8-sig", errors="replace")
    start = text[:HEAD].lower().find(TAKE.decode())
    if start < 0:
        raise ClipError(f"{name}: a skeleton without a take, expected an .amc behind it")
    if SKELETON not in data[:start].lower():
        remedy = "put it beside the file (02.asf for 02_01.amc), or before it in one file"
        raise ClipError(f"{name}: a take without its skeleton (.asf); {remedy}")
    head = text[:start]
    asf = parse_asf(head, name)
    scale, lines, first = _head(text[start:], name, head.count("\n") + 1)
    columns = [len(bone.dof) for bone in asf.bones]
    values = _frames(lines, asf, f"{name}: line", first)
    if not 2 <= len(values) <= RATE * LONGEST:
        expected = f"expected 2 or more, {LONGEST:.0f} s at most"
        raise ClipError(f"{name}: {len(values)} frames, {expected}")
    starts = np.concatenate([[0], np.cumsum(columns)])
    rotations = np.zeros((len(values), len(asf.bones), 4))
    for joint, bone in enumerate(asf.bones):
        rotations[:, joint] = _turns(bone, values[:, starts[joint] : starts[joint + 1]], scale)
    place = [asf.bones[0].dof.index(axis) for axis in ("tx", "ty", "tz")]
    vectors = np.array([bone.vector for bone in asf.bones])
    starts_at = np.array([vectors[parent] for parent in asf.parents])
    starts_at[0] = 0
    rest = np.zeros((len(asf.bones), 4))
    rest[:, 0] = 1
    return RawMotion(
        name=name,
        rate=RATE,
        joints=tuple(bone.name for bone in asf.bones),
        parents=asf.parents,
        offsets=starts_at,
        rotations=rotations,
        root_pos=values[:, place],
        rest=rest,
        warnings=(f"{name}: an AMC states no rate: read at {RATE:g} frames/s, as CMU's takes are",),
    )


def find_skeleton(take: Path) -> Path:
    """The .asf beside a take: of its name, of its name's part before the first underscore, or the
    only one; ClipError lists the existing ones."""
    names = {path.stem.lower(): path for path in sorted(take.parent.glob("*.[aA][sS][fF]"))}
    stem = take.stem.lower()
    for candidate in (stem, stem.split("_")[0]):
        if candidate in names:
            return names[candidate]
    if len(names) == 1:
        return next(iter(names.values()))
    there = ", ".join(path.name for path in names.values())[:200] or "none"
    expected = f"expected {stem.split('_')[0]}.asf beside it; there: {there}"
    raise ClipError(f"{take.name}: a take without its skeleton, {expected}")


def read_bytes(path: Path, skeleton: Path | None = None) -> bytes:
    """A motion file's bytes; an AMC's follow those of its skeleton, which is given or beside it.
    ClipError where one is given for another kind of file."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ClipError(f"{path.name}: {size} bytes, expected {LARGEST_FILE} at most; cut the take")
    data = path.read_bytes()
    head = data[:HEAD].lower()
    if TAKE not in head[:4000] or SKELETON in head:
        if skeleton:
            expected = "expected an .amc without a skeleton of its own"
            raise ClipError(f"{path.name}: {skeleton.name} is given to it, {expected}")
        return data
    return _read_skeleton(skeleton or find_skeleton(path), path.name) + b"\n" + data


def _read_skeleton(path: Path, take: str) -> bytes:
    """The bytes of an .asf; ClipError lists the folder's .asf files where it is missing."""
    if not path.is_file():
        there = ", ".join(sorted(p.name for p in path.parent.glob("*.[aA][sS][fF]")))[:200]
        problem = f"no skeleton {path}; in that folder: {there or 'no .asf'}"
        raise ClipError(f"{take}: {problem}")
    return path.read_bytes()


def _head(text: str, name: str, first: int) -> tuple[float, list[str], int]:
    """Radians per unit of angle, the lines from the first frame on, and the first one's number."""
    lines = text.splitlines()
    scale = np.pi / 180
    for number, line in enumerate(lines):
        word = line.strip().lower()
        if word == ":radians":
            scale = 1.0
        if word and not word.startswith((":", "#")):
            return scale, lines[number:], first + number
    raise ClipError(f"{name}: no frame behind :FULLY-SPECIFIED")


def _frames(lines: list[str], asf: Asf, line_label: str, first: int) -> np.ndarray:
    """Values of all bones in their order, (T, columns)."""
    sizes = {bone.name: len(bone.dof) for bone in asf.bones if bone.dof}
    width = sum(sizes.values())
    rows: list[float] = []
    frame: dict[str, list[float]] = {}
    number = None
    for at, line in enumerate(lines, start=first):
        words = line.split()
        if not words:
            continue
        if len(words) == 1 and words[0].isdecimal():
            if number is not None:
                rows += _row(frame, sizes, f"{line_label} {at}: frame {number}")
            number = _next(number, words[0], f"{line_label} {at}")
            frame = {}
            if len(rows) + width > MAX_VALUES:
                raise ClipError(f"{line_label} {at}: more than {MAX_VALUES} values, cut the take")
            continue
        label = f"{line_label} {at}: frame {number}"
        if words[0] not in sizes or words[0] in frame:
            raise ClipError(f"{label}: {_wrong_bone(words[0], frame, sizes)}")
        frame[words[0]] = _values(words[1:], sizes[words[0]], f"{label}: {words[0][:40]}")
    rows += _row(frame, sizes, f"{line_label} {first + len(lines)}: frame {number}")
    return np.array(rows).reshape(-1, width)


def _next(number: int | None, word: str, label: str) -> int:
    """The number of a frame, one above the last."""
    frame = int(word[:12])
    if number is not None and frame != number + 1:
        expected = f"expected {number + 1}; frames are missing"
        raise ClipError(f"{label}: frame {frame} behind frame {number}, {expected}")
    return frame


def _wrong_bone(bone: str, frame: dict[str, list[float]], sizes: dict[str, int]) -> str:
    if bone in frame:
        return f"{bone[:40]!r} stands there twice"
    near = ", ".join(get_close_matches(bone, sizes, 3)) or ", ".join(sizes)[:200]
    return f"{bone[:40]!r} is no bone of its skeleton with channels; near: {near}; is it another's?"


def _values(words: list[str], count: int, label: str) -> list[float]:
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != count or not all(-LARGEST < value < LARGEST for value in values):
        shown = " ".join(words)[:60]
        raise ClipError(f"{label} {shown!r}, expected {count} finite numbers with decimal points")
    return values


def _row(frame: dict[str, list[float]], sizes: dict[str, int], label: str) -> list[float]:
    if missing := [bone for bone in sizes if bone not in frame]:
        lacking = ", ".join(missing)[:200]
        raise ClipError(f"{label} has no {lacking}, expected every bone of its skeleton")
    return [value for bone in sizes for value in frame[bone]]


def _turns(bone: Bone, values: np.ndarray, scale: float) -> np.ndarray:
    """Rotations relative to the parent, (T, 4): C Rz Ry Rx C'."""
    turn = np.zeros((len(values), 4))
    turn[:, 0] = 1
    for axis in "zyx":
        if f"r{axis}" in bone.dof:
            angle = values[:, bone.dof.index(f"r{axis}")] * scale
            turn = multiply(turn, from_axis_angle(axis, angle))
    axes = np.broadcast_to(bone.axis, turn.shape)
    return multiply(multiply(axes, turn), conjugate(axes))
