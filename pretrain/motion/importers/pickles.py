"""Pickles without their code: numbers, text, plain containers and arrays, and nothing else.

A pickle is a program. Its instructions are first read without running any, and all but those that
build data are refused; then each name that it asks for is looked up in a table (`ARRAYS`), never
imported. Arrays are rebuilt here from their bytes: numpy's own rebuilding takes what it is given.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pretrain.motion.clip import ClipError

MAX_INSTRUCTIONS = 10_000_000  # an object each at most: about 700 MB
HEAD = re.compile(rb"\x80[\x02-\x05]")
KIND = re.compile(r"[fiubUS][0-9]{1,4}")
DATA = """
    PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINSTRING
    SHORT_BINSTRING BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8
    BYTEARRAY8 EMPTY_LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT SETITEM
    SETITEMS
    BINGET LONG_BINGET BINPUT LONG_BINPUT MEMOIZE GLOBAL STACK_GLOBAL REDUCE BUILD BINPERSID
"""
OPCODES = {ord(opcode.code): opcode for opcode in pickletools.opcodes}
ALLOWED = [code for code, opcode in OPCODES.items() if opcode.name in DATA.split()]
# opcode -> bytes of its argument; negative: -1 two lines, else behind a count of COUNTS bytes
SIZES = {code: getattr(OPCODES[code].arg, "n", 0) for code in ALLOWED}
COUNTS = {-2: 1, -3: 4, -4: 4, -5: 8}
STOP = ord(".")
GLOBAL = ord("c")
PUTS = (ord("q"), ord("r"))
FAULTS = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    OverflowError,
    MemoryError,
    RecursionError,
)


class Maker:
    """What a pickle may call: one function, without attributes that the pickle could set."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]):
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        """What the pickle gets for `arguments`."""
        return self._make(*arguments)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("a name is given a state")


class PickledType:
    """A numpy dtype as a pickle describes it."""

    __slots__ = ("_code", "_order")

    def __init__(self, code: object = "", *_: object):
        self._code = code
        self._order = "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._order = state[1]

    @property
    def is_object(self) -> bool:
        """Whether its arrays hold objects."""
        return self._code in ("O", "O8")

    def dtype(self) -> np.dtype[Any]:
        """ValueError for anything but numbers and text."""
        known = isinstance(self._code, str) and KIND.fullmatch(self._code)
        if not known or self._order not in ("<", ">", "=", "|"):
            raise ValueError(f"an array of {str(self._code)[:20]!r}, expected numbers or text")
        return np.dtype(f"{self._order}{self._code}")


class PickledArray:
    """A numpy array as a pickle describes it: shape, dtype, order and bytes."""

    __slots__ = ("_state",)

    def __init__(self, state: tuple[Any, ...] = ()):
        self._state = state

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._state = state

    def value(self) -> Any:
        """The array, or the one object of an array of shape (). ValueError where its bytes do not
        fit its shape.
        """
        if len(self._state) != 5 or not isinstance(self._state[2], PickledType):
            raise ValueError("an array without shape, type and bytes")
        _, shape, kind, fortran, raw = self._state
        if kind.is_object:
            if shape != () or not isinstance(raw, list) or len(raw) != 1:
                raise ValueError("an array of objects")
            return raw[0]
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        if not isinstance(shape, tuple) or not isinstance(raw, bytes):
            raise ValueError("an array without shape and bytes")
        return from_bytes(raw, kind.dtype(), shape, bool(fortran))


def from_bytes(
    raw: bytes | memoryview,
    dtype: np.dtype[Any],
    shape: tuple[Any, ...],
    fortran: bool = False,
) -> np.ndarray:
    """An array that views `raw`; ValueError where the shape needs more bytes or fewer."""
    sound = len(shape) <= 8 and all(type(n) is int and n >= 0 for n in shape)
    if not sound or math.prod(shape) * dtype.itemsize != len(raw):
        raise ValueError(f"{len(raw)} bytes of {dtype} for an array of shape {str(shape)[:60]}")
    if not dtype.itemsize:
        return np.zeros(shape if math.prod(shape) == 0 else (), dtype)
    return np.frombuffer(raw, dtype).reshape(shape, order="F" if fortran else "C")


def _scalar(kind: PickledType, raw: Any) -> Any:
    raw = raw.encode("latin1") if isinstance(raw, str) else raw
    return from_bytes(raw, kind.dtype(), ())[()]


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise ValueError(f"bytes as {encoding[:20]!r}")
    return text.encode("latin1")


def _from_buffer(raw: Any, kind: PickledType, shape: Any, order: str) -> PickledArray:
    return PickledArray((1, shape, kind, order == "F", bytes(raw)))


ARRAYS: dict[tuple[str, str], Maker] = {
    ("collections", "OrderedDict"): Maker(dict),
    ("numpy", "ndarray"): Maker(PickledArray),
    ("numpy", "dtype"): Maker(PickledType),
    ("_codecs", "encode"): Maker(_encode),
    ("__builtin__", "bytes"): Maker(lambda: b""),
} | {
    (f"numpy.{core}.{module}", function): maker
    for core in ("core", "_core")
    for module, function, maker in (
        ("multiarray", "_reconstruct", Maker(lambda *_: PickledArray())),
        ("multiarray", "scalar", Maker(_scalar)),
        ("numeric", "_frombuffer", Maker(_from_buffer)),
    )
}


class _Unpickler(pickle.Unpickler):
    def __init__(
        self,
        data: bytes,
        name: str,
        names: Mapping[tuple[str, str], Maker],
        persistent: Callable[[Any], Any] | None,
    ):
        super().__init__(io.BytesIO(data), encoding="latin1")
        self.name = name
        self.names = names
        self.persistent = persistent

    def find_class(self, module_name: str, global_name: str) -> Any:
        found = self.names.get((module_name, global_name))
        if found is None:
            asked = f"{module_name}.{global_name}"[:80]
            expected = "expected numbers, text, lists, dicts and numpy arrays alone"
            raise ClipError(f"{self.name}: its pickle asks for {asked!r}, {expected}; not loaded")
        return found

    def persistent_load(self, pid: Any) -> Any:
        if self.persistent is None:
            raise ClipError(f"{self.name}: its pickle refers to data outside of it; not loaded")
        return self.persistent(pid)


def is_pickle(data: bytes) -> bool:
    """Whether `data` begins as a pickle of protocol 2 to 5 does."""
    return HEAD.match(data) is not None


def load(
    data: bytes,
    name: str,
    names: Mapping[tuple[str, str], Maker] = ARRAYS,
    persistent: Callable[[Any], Any] | None = None,
) -> Any:
    """What the pickle `data` holds; arrays in it are PickledArray, dicts are dict.

    `names` are all that it may ask for. ClipError names what it asks for beside them, and where an
    instruction is of another kind than data.
    """
    _scan(data, name)
    try:
        return _Unpickler(data, name, names, persistent).load()
    except ClipError:
        raise
    except FAULTS as error:
        raise ClipError(f"{name}: its pickle cannot be read ({str(error)[:100]})") from None


def value_of(found: Any, label: str) -> Any:
    """`found`, as a numpy array where it is a PickledArray; ClipError begins with `label`."""
    if not isinstance(found, PickledArray):
        return found
    try:
        return found.value()
    except (ValueError, TypeError) as error:
        raise ClipError(f"{label}: {error}") from None


def _scan(data: bytes, name: str) -> None:
    """ClipError where an instruction builds something else than data, or fills a place beyond
    those that the instructions before could have filled.
    """
    at = 0
    count = 0
    while at < len(data):
        code = data[at]
        size = SIZES.get(code)
        count += 1
        if size is None or count > MAX_INSTRUCTIONS:
            known = OPCODES[code].name if code in OPCODES else f"{code:#x}"
            reason = f"instruction {known} at byte {at}, expected only those that build data"
            many = f"more than {MAX_INSTRUCTIONS} instructions, cut the take"
            raise ClipError(f"{name}: its pickle has {many if size is not None else reason}")
        if code == STOP:
            break
        if code in PUTS and int.from_bytes(data[at + 1 : at + 1 + size], "little") > count:
            raise ClipError(f"{name}: its pickle fills a place at byte {at} that it cannot need")
        at += 1 + (size if size >= 0 else _argument(data, at + 1, size))
    if at != len(data) - 1:
        raise ClipError(f"{name}: its pickle of {len(data)} bytes ends at byte {at}")


def _argument(data: bytes, at: int, size: int) -> int:
    """Bytes of an argument that is of no fixed size; beyond the end where it is not whole."""
    if size in COUNTS:
        count = COUNTS[size]
        return count + int.from_bytes(data[at : at + count], "little")
    first = data.find(b"\n", at)
    second = data.find(b"\n", first + 1)
    return second + 1 - at if 0 <= first < second else len(data)
