"""Reads arrays of .npy files and zips of them by their headers: no pickle, no array larger than its
data."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterable

import numpy as np

from pretrain.motion.clip import ClipError
from pretrain.motion.importers.pickled_arrays import from_bytes

MAGIC = b"\x93NUMPY"
FIELD = re.compile(
    r"'(?P<key>descr|fortran_order|shape)': "
    r"(?P<value>'[<>|=]?[A-Za-z][0-9]{0,6}'|True|False|\((?:[0-9]{1,12}L?,? ?){0,8}\))"
)
ONE = FIELD.pattern.replace("?P<key>", "?:").replace("?P<value>", "?:")
HEADER = re.compile(r"\{(?:" + ONE + r",? ?){3}\}\s*")
KIND = re.compile(r"[<>|=]?[fiubUS][0-9]{1,6}")
LARGEST_FILE = 1 << 29  # bytes, unpacked
FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    ValueError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,  # an encrypted entry
)


def entry_names(data: bytes) -> frozenset[str]:
    """Names in a zip, without `.npy`; none where `data` is no zip."""
    if not data.startswith(b"PK"):
        return frozenset()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return frozenset(name.removesuffix(".npy") for name in archive.namelist())
    except FAULTS:
        return frozenset()


def read_entries(data: bytes, name: str, entries: Iterable[str]) -> dict[str, bytes]:
    """The bytes of `entries` of a zip; ClipError where one is missing or they are too large."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = {entry: archive.getinfo(entry) for entry in entries}
            size = sum(info.file_size for info in infos.values())
            if size > LARGEST_FILE:
                raise ClipError(f"{name}: {size} bytes unpacked, expected {LARGEST_FILE} at most")
            return {entry: archive.read(info) for entry, info in infos.items()}
    except ClipError:
        raise
    except FAULTS as error:
        raise ClipError(f"{name}: its zip cannot be read ({str(error)[:100]})") from None


def read_arrays(data: bytes, name: str, keys: Iterable[str]) -> dict[str, np.ndarray]:
    """Arrays of an .npz by key; ClipError names the one that is missing or is not of numbers or
    text.
    """
    entries = read_entries(data, name, [f"{key}.npy" for key in keys])
    arrays = {key.removesuffix(".npy"): raw for key, raw in entries.items()}
    return {key: _array(raw, f"{name}: {key}") for key, raw in arrays.items()}


def split_header(data: bytes, label: str) -> tuple[str, tuple[int, ...], bool, bytes]:
    """dtype as text, shape, whether it is column-major, and the bytes after the header of an .npy
    file."""
    size = 2 if data[len(MAGIC) : len(MAGIC) + 1] == b"\x01" else 4
    start = len(MAGIC) + 2 + size
    stop = start + int.from_bytes(data[start - size : start], "little")
    header = data[start:stop].decode("latin1")
    if not data.startswith(MAGIC) or HEADER.fullmatch(header) is None:
        raise ClipError(f"{label}: not an .npy file of one array ({header[:60]!r})")
    fields = {match["key"]: match["value"] for match in FIELD.finditer(header)}
    if fields.keys() != {"descr", "fortran_order", "shape"}:
        raise ClipError(f"{label}: not an .npy file of one array ({header[:60]!r})")
    shape = tuple(int(size) for size in re.findall(r"[0-9]+", fields["shape"]))
    return fields["descr"].strip("'"), shape, fields["fortran_order"] == "True", data[stop:]


def _array(data: bytes, label: str) -> np.ndarray:
    kind, shape, fortran, raw = split_header(data, label)
    if KIND.fullmatch(kind) is None:
        raise ClipError(f"{label} holds {kind!r}, expected numbers or text")
    try:
        return from_bytes(raw, np.dtype(kind), shape, fortran)
    except (TypeError, ValueError) as error:
        raise ClipError(f"{label} has {error}") from None
