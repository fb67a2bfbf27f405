"""Reads pickles without running their code: numbers, text, plain containers and arrays only.

A pickle is a program. Its instructions are first scanned, and all but those that build data are
refused; then each name in it is looked up in a table (`ARRAYS`), never imported."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable, Mapping
from typing import Any

from pretrain.motion.clip import ClipError
from pretrain.motion.importers.pickled_arrays import ARRAYS, Maker

MAX_INSTRUCTIONS = 10_000_000  # at most one object each: about 700 MB
HEAD = re.compile(rb"\x80[\x02-\x05]")
DATA = """
    PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINSTRING
    SHORT_BINSTRING BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8
    BYTEARRAY8 EMPTY_LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT SETITEM
    SETITEMS BINGET LONG_BINGET BINPUT LONG_BINPUT MEMOIZE GLOBAL STACK_GLOBAL REDUCE BUILD
    BINPERSID
"""
OPCODES = {ord(opcode.code): opcode for opcode in pickletools.opcodes}
ALLOWED = [code for code, opcode in OPCODES.items() if opcode.name in DATA.split()]
# opcode -> bytes of its argument; negative: -1 two lines, else behind a count of COUNTS bytes
SIZES = {code: getattr(OPCODES[code].arg, "n", 0) for code in ALLOWED}
COUNTS = {-2: 1, -3: 4, -4: 4, -5: 8}
STOP = ord(".")
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
        maker = self.names.get((module_name, global_name))
        if maker is None:
            named = f"{module_name}.{global_name}"[:80]
            expected = "expected numbers, text, lists, dicts and numpy arrays alone"
            raise ClipError(f"{self.name}: its pickle asks for {named!r}, {expected}; not loaded")
        return maker

    def persistent_load(self, pid: Any) -> Any:
        if self.persistent is None:
            raise ClipError(f"{self.name}: its pickle refers to data outside of it; not loaded")
        return self.persistent(pid)


def is_pickle(data: bytes) -> bool:
    """Whether `data` begins like a pickle of protocol 2 to 5."""
    return HEAD.match(data) is not None


def load(
    data: bytes,
    name: str,
    names: Mapping[tuple[str, str], Maker] = ARRAYS,
    persistent: Callable[[Any], Any] | None = None,
) -> Any:
    """Content of the pickle `data`; arrays are PickledArray, dicts are dict.

    `names` are the allowed names. ClipError names any other, or the place of an instruction that
    does not build data."""
    _scan(data, name)
    try:
        return _Unpickler(data, name, names, persistent).load()
    except ClipError:
        raise
    except FAULTS as error:
        raise ClipError(f"{name}: its pickle cannot be read ({str(error)[:100]})") from None


def _scan(data: bytes, name: str) -> None:
    """ClipError where an instruction does not build data, or writes a memo index above the number
    of instructions so far."""
    at = 0
    count = 0
    while at < len(data):
        code = data[at]
        size = SIZES.get(code)
        count += 1
        if size is None or count > MAX_INSTRUCTIONS:
            code_name = OPCODES[code].name if code in OPCODES else f"{code:#x}"
            reason = f"instruction {code_name} at byte {at}, expected only those that build data"
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
    """Size of an argument of variable size, in bytes; beyond the end where it is truncated."""
    if size in COUNTS:
        count = COUNTS[size]
        return count + int.from_bytes(data[at : at + count], "little")
    first = data.find(b"\n", at)
    second = data.find(b"\n", first + 1)
    return second + 1 - at if 0 <= first < second else len(data)
