"""Rebuilds numpy arrays of a pickle from their bytes.

Each allowed name of a pickle maps to a Maker, and arrays become PickledArray, whose `value` is
checked. numpy's own reconstruction checks nothing."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from pretrain.motion.clip import ClipError

LAST_LETTER = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
KIND = re.compile(r"[fiubUS][0-9]{1,4}")


class Maker:
    """A callable for a pickle: one function, without attributes that the pickle could set."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]):
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        """The function's result for `arguments`."""
        return self._make(*arguments)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("a name is given a state")


class PickledType:
    """A numpy dtype from a pickle."""

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
        valid = isinstance(self._code, str) and KIND.fullmatch(self._code)
        if not valid or self._order not in ("<", ">", "=", "|"):
            raise ValueError(f"an array of {str(self._code)[:20]!r}, expected numbers or text")
        return np.dtype(f"{self._order}{self._code}")


class PickledArray:
    """A numpy array from a pickle: shape, dtype, order and bytes."""

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
    """An array that views `raw`; ValueError where bytes and shape do not match, and for invalid
    Unicode, which numpy does not check and Python fails on later."""
    sound = len(shape) <= 8 and all(type(n) is int and n >= 0 for n in shape)
    if not sound or math.prod(shape) * dtype.itemsize != len(raw):
        raise ValueError(f"{len(raw)} bytes of {dtype} for an array of shape {str(shape)[:60]}")
    if not dtype.itemsize:
        return np.zeros(shape if math.prod(shape) == 0 else (), dtype)
    if dtype.kind == "U":
        letters = np.frombuffer(raw, f"{dtype.byteorder}u4")
        halves = (letters >= SURROGATES[0]) & (letters <= SURROGATES[1])
        if (halves | (letters > LAST_LETTER)).any():
            raise ValueError("text that is no Unicode")
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


def value_of(value: Any, label: str) -> Any:
    """`value`, as a numpy array where it is a PickledArray; ClipError begins with `label`."""
    if not isinstance(value, PickledArray):
        return value
    try:
        return value.value()
    except (ValueError, TypeError) as error:
        raise ClipError(f"{label}: {error}") from None
