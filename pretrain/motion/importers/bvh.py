"""BVH: a tree of joints with offsets, then a line of channel values per frame. Any channel order
and unit of length; degrees, y up.

Position channels of a joint replace its OFFSET (as in bvhio, where others add or ignore them): in
Bandai Namco's files the root is static and `Hips` moves. One exporter (iClone, `CC_Base`) omits the
root's OFFSET from its channels, which puts the hips at the ground: that constant is no error, for
every imported clip is moved to the origin and onto the ground."""

from __future__ import annotations

import numpy as np

from pretrain.characters.rotations import AXIS, from_axis_angle, multiply
from pretrain.motion.clip import ClipError
from pretrain.motion.importers.bvh_header import Header, parse_header
from pretrain.motion.raw import RawMotion

MAX_VALUES = 50_000_000  # of all frames, 2 GB: over an hour of 31 joints at 120 Hz
CHUNK = 4096  # frames converted at a time
LONGEST_FRAME = 1.0  # s
LONGEST = 3600.0  # s of a take
LARGEST = 1e6  # of a channel's values


def recognize(data: bytes) -> bool:
    """Whether `data` begins like a BVH file."""
    return data[:200].lstrip(b"\xef\xbb\xbf \t\r\n").upper().startswith(b"HIERARCHY")


def read(data: bytes, name: str) -> RawMotion:
    """ClipError names the file and the line or frame. A leading T-pose becomes the rest pose."""
    text = data.decode("utf-8-sig", errors="replace")
    top, separator, frames_text = text.partition("MOTION")
    if not separator:
        raise ClipError(f"{name}: no line MOTION, expected HIERARCHY, MOTION and frames")
    header = parse_header(top, name)
    rate, values = _frames(frames_text, len(header.channels), name)
    rotations = _rotations(header, values)
    translations = _translations(header, values)
    root_pos = translations.pop(0, np.broadcast_to(header.offsets[0], (len(values), 3)))
    first = 1 if _t_pose_first(header, values) else 0
    return RawMotion(
        name=name,
        rate=rate,
        joints=header.joints,
        parents=header.parents,
        offsets=header.offsets,
        rotations=rotations[first:],
        root_pos=root_pos[first:],
        rest=rotations[0] if first else None,
        translations={joint: moved[first:] for joint, moved in translations.items()},
    )


def _frames(text: str, columns: int, name: str) -> tuple[float, np.ndarray]:
    """Rate in frames/s, and the values (T, columns)."""
    head, _, rest = text.lstrip().partition("\n")
    words = head.replace(":", " ").split()
    if len(words) != 2 or words[0].lower() != "frames" or not words[1].isdecimal():
        raise ClipError(
            f"{name}: {head.strip()[:60]!r} after MOTION, expected Frames: and a whole number"
        )
    count = int(words[1][:12])
    head, _, rest = rest.partition("\n")
    label, _, seconds = head.partition(":")
    frame_time = _frame_time(label, seconds, name)
    if count < 2 or columns * count > MAX_VALUES:
        raise ClipError(
            f"{name}: {count} frames of {columns} values, expected 2 or more, and "
            f"{MAX_VALUES} values at most"
        )
    if count * frame_time > LONGEST:
        raise ClipError(
            f"{name}: lasts {count * frame_time:.0f} s, expected {LONGEST:.0f} at most; cut it"
        )
    if "," in rest:
        line = next(i for i, row in enumerate(rest.splitlines()) if "," in row)
        raise ClipError(
            f"{name}: frame {line} has a comma, expected decimal points and spaces between numbers"
        )
    values = _parse(rest, name)
    if len(values) != count * columns:
        rows = len(values) / columns if columns else 0
        raise ClipError(f"{name}: {rows:.6g} frames of {columns} values, its header states {count}")
    values = values.reshape(count, columns)
    if (bad := np.argwhere(~(np.abs(values) < LARGEST))).size:
        frame, column = bad[0]
        raise ClipError(
            f"{name}: frame {frame} column {column} is {values[frame, column]}, expected "
            f"below {LARGEST:g}"
        )
    return 1 / frame_time, values


def _frame_time(label: str, text: str, name: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = np.nan
    if " ".join(label.lower().split()) != "frame time" or not 1e-4 <= seconds <= LONGEST_FRAME:
        hint = "is it a rate?" if seconds > LONGEST_FRAME else "in seconds"
        shown = f"{label.strip()}:{text.rstrip()}"[:60]
        raise ClipError(
            f"{name}: {shown!r}, expected Frame Time: of 0.0001 to {LONGEST_FRAME:g} ({hint})"
        )
    return seconds


def _parse(text: str, name: str) -> np.ndarray:
    """All numbers of `text`, (N,)."""
    try:
        return np.fromstring(text, dtype=np.float64, sep=" ")  # a third faster than splitting
    except ValueError as error:
        raise ClipError(f"{name}: a frame is not of numbers: {error}") from None


def _rotations(header: Header, values: np.ndarray) -> np.ndarray:
    """(T, J, 4) wxyz: each joint's rotation channels in order, each in the frame of the
    previous."""
    rotations = np.zeros((len(values), len(header.joints), 4))
    rotations[..., 0] = 1
    by_order: dict[str, list[tuple[int, list[int]]]] = {}
    for joint in range(len(header.joints)):
        columns = [
            i
            for i, (of, channel) in enumerate(header.channels)
            if of == joint and channel.endswith("rotation")
        ]
        order = "".join(header.channels[i][1][0] for i in columns)
        by_order.setdefault(order, []).append((joint, columns))
    by_order.pop("", None)
    for order, group in by_order.items():
        joints = [joint for joint, _ in group]
        columns = np.array([columns for _, columns in group])
        for start in range(0, len(values), CHUNK):
            angles = np.radians(values[start : start + CHUNK, columns])  # (T, G, axes)
            rotations[start : start + CHUNK, joints] = _turn(order, angles)
    return rotations


def _turn(order: str, angles: np.ndarray) -> np.ndarray:
    """Rotations about the axes of `order`, each in the frame of the last. (..., axes) -> (...,
    4)."""
    turn = from_axis_angle(order[0], angles[..., 0])
    for i, axis in enumerate(order[1:], start=1):
        turn = multiply(turn, from_axis_angle(axis, angles[..., i]))
    return turn


def _translations(header: Header, values: np.ndarray) -> dict[int, np.ndarray]:
    """Joint -> (T, 3), for each joint with position channels."""
    translations: dict[int, np.ndarray] = {}
    for column, (joint, channel) in enumerate(header.channels):
        if channel.endswith("position"):
            translations.setdefault(joint, np.tile(header.offsets[joint], (len(values), 1)))
            translations[joint][:, AXIS[channel[0]]] = values[:, column]
    return translations


def _t_pose_first(header: Header, values: np.ndarray) -> bool:
    """Whether frame 0 is a prepended T-pose: only it has whole degrees, unlike captures."""
    columns = [i for i, (_, channel) in enumerate(header.channels) if channel.endswith("rotation")]
    turns = values[:, columns]
    whole_degrees = (turns == np.round(turns)).all(-1)
    return len(values) > 2 and bool(whole_degrees[0]) and not whole_degrees[1:].any()
