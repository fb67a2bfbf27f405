"""The part of a BVH file before MOTION: joints, their offsets, and the channel of each column."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pretrain.motion.clip import ClipError

MAX_JOINTS = 1000
LARGEST = 1e6  # of an offset
END = -1  # in place of a joint: an End Site
NONE = -2  # no joint


@dataclass(frozen=True)
class Header:
    """The part before MOTION."""

    joints: tuple[str, ...]
    parents: tuple[int, ...]
    offsets: np.ndarray  # (J, 3)
    channels: tuple[tuple[int, str], ...]  # (joint, name) of each column


def parse_header(text: str, name: str) -> Header:
    """Joints parent-first with their channels in the order of the columns."""
    tree = _Tree()
    for number, line in enumerate(text.splitlines(), start=1):
        for words in _statements(line):
            tree.add(words, f"{name}: line {number}")
    if tree.open or not tree.joints:
        problem = f"{len(tree.open)} braces left open and {len(tree.joints)} joints"
        raise ClipError(f"{name}: {problem} before MOTION")
    if len(tree.joints) > len(tree.channels):
        # each frame takes memory for every joint, with or without channels
        raise ClipError(
            f"{name}: {len(tree.channels)} channels for {len(tree.joints)} joints, expected "
            "one each or more"
        )
    offsets = np.array(tree.offsets)
    return Header(tuple(tree.joints), tuple(tree.parents), offsets, tuple(tree.channels))


@dataclass
class _Tree:
    """The joints read so far."""

    joints: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    offsets: list[np.ndarray] = field(default_factory=list)
    channels: list[tuple[int, str]] = field(default_factory=list)
    open: list[int] = field(default_factory=list)  # joints in open braces; END for an End Site
    next: int = NONE  # what the next brace opens

    def add(self, words: list[str], label: str) -> None:
        """One statement of the header."""
        keyword = words[0].upper()
        if keyword in ("ROOT", "JOINT"):
            self._add_joint(words, label)
        elif keyword == "END":
            self.next = END
        elif keyword in ("{", "}"):
            self._add_brace(keyword, label)
        elif keyword == "OFFSET" and self.open:
            self._add_offset(_numbers(words[1:], 3, label))
        elif keyword == "CHANNELS" and self.open and self.open[-1] >= 0:
            self.channels += [(self.open[-1], channel) for channel in _channels(words, label)]
        elif keyword != "HIERARCHY":
            expected = "expected ROOT, JOINT, End Site, OFFSET, CHANNELS or a brace"
            raise ClipError(f"{label}: {words[0][:40]!r}, {expected}")

    def _add_joint(self, words: list[str], label: str) -> None:
        self.next = len(self.joints)
        parent = next((joint for joint in reversed(self.open) if joint >= 0), -1)
        if (parent < 0) != (self.next == 0) or self.next >= MAX_JOINTS:
            raise ClipError(f"{label}: a joint outside of the one root, or over {MAX_JOINTS}")
        self.joints.append(" ".join(words[1:]))
        self.parents.append(parent)
        self.offsets.append(np.zeros(3))

    def _add_brace(self, brace: str, label: str) -> None:
        if brace == "{" and self.next != NONE:
            self.open.append(self.next)
            self.next = NONE
        elif brace == "}" and self.open:
            self.open.pop()
        else:
            raise ClipError(f"{label}: a brace that opens no joint or closes none")

    def _add_offset(self, offset: np.ndarray) -> None:
        if self.open[-1] != END:
            self.offsets[self.open[-1]] = offset


def _statements(line: str) -> list[list[str]]:
    """A line's statements; braces may share a line with others."""
    spaced = line.replace("{", "\n{\n").replace("}", "\n}\n")
    return [part.split() for part in spaced.split("\n") if part.strip()]


def _numbers(words: list[str], count: int, label: str) -> np.ndarray:
    try:
        numbers = np.array([float(word) for word in words])
    except ValueError:
        numbers = np.array([])
    if len(numbers) != count or not (np.abs(numbers) < LARGEST).all():
        raise ClipError(
            f"{label}: {' '.join(words)[:60]!r}, expected {count} numbers with decimal points"
        )
    return numbers


def _channels(words: list[str], label: str) -> list[str]:
    channels = {f"{axis}{kind}" for axis in "xyz" for kind in ("position", "rotation")}
    names = [word.lower() for word in words[2:]]
    if (
        not words[1:]
        or words[1] != str(len(names))
        or not channels.issuperset(names)
        or len(set(names)) < len(names)
    ):
        raise ClipError(
            f"{label}: {' '.join(words)[:60]!r}, expected CHANNELS, their number and names as "
            "Xrotation"
        )
    return names
