"""Zips of arrays, and the errors of unreadable ones."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from benchmarks.clip_files.formats import npz
from pretrain.motion.clip import ClipError
from pretrain.motion.importers import archives
from pretrain.motion.importers.archives import entry_names, read_arrays


def zipped(**entries: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    buffer = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, fields)
    return buffer.getvalue()


def test_arrays_come_back_in_their_order():
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    data = npz(a=array, b=np.array(["x", "yz"]))
    assert entry_names(data) == {"a", "b"}
    found = read_arrays(data, "a.npz", ["a", "b"])
    np.testing.assert_array_equal(found["a"], array)
    assert found["b"].tolist() == ["x", "yz"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zipped(b=b""), "no item named 'a.npy'"),
        (zipped(a=b"no array"), "a: not an .npy file"),
        (zipped(a=header((3,))), "a has 0 bytes of float64 for an array of shape"),
        (zipped(a=header((10**12,)) + b"8 bytes."), "a has 8 bytes of float64"),
        (zipped(a=header((1,), "|O") + b"pickle"), r"a holds '\|O', expected numbers or text"),
        (zipped(a=header((2,)) + bytes(16))[:90], "zip cannot be read"),
        (b"PK", "zip cannot be read"),
    ],
    # a zip's bytes contain the time, which must not be part of a test's id
    ids=["absent", "no_array", "empty", "huge", "objects", "cut", "no_zip"],
)
def test_unreadable_array_is_refused_with_its_reason(data, message):
    with pytest.raises(ClipError, match=message) as caught:
        read_arrays(data, "a.npz", ["a"])
    assert str(caught.value).startswith("a.npz: ")


def test_text_with_invalid_unicode_is_refused():
    for letter in (0x110000, 0xD800, 2**32 - 1):
        data = zipped(a=header((1,), "<U1") + letter.to_bytes(4, "little"))
        with pytest.raises(ClipError, match="a has text that is no Unicode"):
            read_arrays(data, "a.npz", ["a"])


def test_archive_over_the_unpacked_size_limit_is_refused(monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_FILE", 1000)
    with pytest.raises(ClipError, match="bytes unpacked, expected 1000 at most"):
        read_arrays(npz(a=np.zeros(1000)), "a.npz", ["a"])
