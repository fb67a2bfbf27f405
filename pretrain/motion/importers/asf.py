"""ASF: the skeleton of Acclaim's format. Each bone rotates about its own axes.

A bone starts at its parent's end; its vector is `direction` times `length`, in the world's axes of
the zero pose. Its rotation relative to its parent is C Rz Ry Rx C', with C from `axis`; `dof` lists
which of rx, ry, rz exist, and their order in an AMC."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pretrain.characters.rotations import from_axis_angle, multiply
from pretrain.motion.clip import ClipError

MAX_BONES = 1000
LARGEST = 1e6
DEGREES = {"deg": np.pi / 180, "rad": 1.0}
ROOT = "root"
SECTIONS = ("units", "root", "bonedata", "hierarchy")


@dataclass(frozen=True)
class Bone:
    """One bone, from its block in the file."""

    name: str
    vector: np.ndarray  # (3,) from its start to its end, units of the file
    axis: np.ndarray  # (4,) wxyz, C
    dof: tuple[str, ...]  # "rx", "ry", "rz", in the order of an AMC's numbers


@dataclass(frozen=True)
class Asf:
    """A skeleton: bones with the root first, parents before children."""

    bones: tuple[Bone, ...]
    parents: tuple[int, ...]  # -1 for the root


@dataclass
class _Block:
    """A bone whose lines are being read."""

    name: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)


def parse_asf(text: str, name: str) -> Asf:
    """ClipError names the line."""
    sections: dict[str, list[tuple[int, list[str]]]] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].startswith(":"):
            section = words[0][1:].lower()
            words = words[1:]
        if section in SECTIONS and words:
            sections.setdefault(section, []).append((number, words))
    if missing := [section for section in SECTIONS if section not in sections]:
        raise ClipError(f"{name}: no :{missing[0]}, expected an ASF skeleton")
    scale = _angle_scale(sections["units"], name)
    bones = {bone.name: bone for bone in _bones(sections["bonedata"], scale, name)}
    if len(bones) >= MAX_BONES:
        raise ClipError(f"{name}: {len(bones)} bones, expected below {MAX_BONES}")
    root = _root(sections["root"], name)
    return _ordered({ROOT: root, **bones}, sections["hierarchy"], name)


def _angle_scale(lines: list[tuple[int, list[str]]], name: str) -> float:
    for number, words in lines:
        if words[0].lower() == "angle":
            if len(words) != 2 or words[1].lower() not in DEGREES:
                shown = " ".join(words)[:40]
                raise ClipError(f"{name}: line {number}: {shown!r}, expected angle deg")
            return DEGREES[words[1].lower()]
    return DEGREES["deg"]


def _root(lines: list[tuple[int, list[str]]], name: str) -> Bone:
    fields = {words[0].lower(): (number, words[1:]) for number, words in lines}
    number, order = fields.get("order", (0, []))
    dof = tuple(word.lower() for word in order)
    if sorted(dof) != ["rx", "ry", "rz", "tx", "ty", "tz"]:
        shown = " ".join(order)[:40]
        expected = "expected TX TY TZ RX RY RZ"
        raise ClipError(f"{name}: line {number}: order {shown!r}, {expected}")
    for key in ("position", "orientation"):
        number, words = fields.get(key, (0, ["0", "0", "0"]))
        if np.any(_numbers(words, 3, f"{name}: line {number}: {key}")):
            label = f"{name}: line {number}"
            raise ClipError(f"{label}: {key} of the root, expected 0 0 0; move the take")
    number, words = fields.get("axis", (0, ["XYZ"]))
    if [word.upper() for word in words] != ["XYZ"]:
        raise ClipError(f"{name}: line {number}: axis of the root {words[:3]}, expected XYZ")
    return Bone(ROOT, np.zeros(3), np.array([1.0, 0, 0, 0]), dof)


def _bones(lines: list[tuple[int, list[str]]], scale: float, name: str) -> list[Bone]:
    bones: list[Bone] = []
    block: _Block | None = None
    for number, words in lines:
        key = words[0].lower()
        if key == "begin":
            block = _Block()
        elif block is None:
            raise ClipError(f"{name}: line {number}: {words[0][:40]!r} outside of begin and end")
        elif key == "end":
            bones.append(_bone(block, scale, f"{name}: line {number}"))
            block = None
        elif key == "name":
            block.name = " ".join(words[1:])
        else:
            block.fields[key] = words[1:]
    if block is not None:
        raise ClipError(f"{name}: the bone {block.name[:40]!r} has no end")
    names = [bone.name for bone in bones]
    if len(set(names)) < len(names):
        raise ClipError(f"{name}: two bones of one name among {', '.join(names)[:200]}")
    return bones


def _bone(block: _Block, scale: float, line_label: str) -> Bone:
    missing = [key for key in ("direction", "length", "axis") if key not in block.fields]
    if not block.name or missing:
        raise ClipError(
            f"{line_label}: the bone {block.name[:40]!r} has no {(missing or ['name'])[0]}"
        )
    label = f"{line_label}: {block.name[:40]}"
    direction = _numbers(block.fields["direction"], 3, f"{label} direction")
    (length,) = _numbers(block.fields["length"], 1, f"{label} length")
    *angles, order = block.fields["axis"] or [""]
    if order.upper() != "XYZ":
        shown = " ".join(block.fields["axis"])[:40]
        raise ClipError(f"{label} axis {shown!r}, expected three angles and XYZ")
    turned = _numbers(angles, 3, f"{label} axis") * scale
    x, y, z = (from_axis_angle(axis, turned[i : i + 1]) for i, axis in enumerate("xyz"))
    dof = tuple(word.lower() for word in block.fields.get("dof", []))
    if not set(dof) <= {"rx", "ry", "rz"} or len(set(dof)) < len(dof):
        raise ClipError(f"{label} dof {' '.join(dof)[:40]!r}, expected some of rx ry rz")
    return Bone(block.name, direction * length, multiply(multiply(z, y), x)[0], dof)


def _numbers(words: list[str], count: int, label: str) -> np.ndarray:
    try:
        numbers = np.array([float(word) for word in words])
    except ValueError:
        numbers = np.array([])
    if len(numbers) != count or not (np.abs(numbers) < LARGEST).all():
        shown = " ".join(words)[:60]
        raise ClipError(f"{label} {shown!r}, expected {count} numbers with decimal points")
    return numbers


def _ordered(bones: dict[str, Bone], lines: list[tuple[int, list[str]]], name: str) -> Asf:
    """Bones in the order of the hierarchy; ClipError where one has no parent or two."""
    parents: dict[str, str] = {}
    order = [ROOT]
    for number, words in lines:
        if words[0].lower() in ("begin", "end") and len(words) == 1:
            continue
        if words[0] not in order:
            raise ClipError(f"{name}: line {number}: {words[0][:40]!r} stands before its parent")
        for child in words[1:]:
            if child not in bones or child in parents or child == ROOT:
                wrong = "has two parents" if child in parents else "is no bone of it"
                raise ClipError(f"{name}: line {number}: {child[:40]!r} {wrong}")
            parents[child] = words[0]
            order.append(child)
    if loose := [bone for bone in bones if bone not in order]:
        raise ClipError(f"{name}: {', '.join(loose)[:200]} in no line of :hierarchy")
    index = {bone: i for i, bone in enumerate(order)}
    return Asf(
        bones=tuple(bones[bone] for bone in order),
        parents=(-1, *(index[parents[bone]] for bone in order[1:])),
    )
