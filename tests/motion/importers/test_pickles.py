"""Pickles: data is read, and anything that would run code is refused before it runs."""

from __future__ import annotations

import builtins
import pickle
from collections import OrderedDict

import numpy as np
import pytest

from benchmarks.clip_files.formats import old
from pretrain.motion.clip import ClipError
from pretrain.motion.importers.pickled_arrays import value_of
from pretrain.motion.importers.pickles import load

ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    np.arange(3, dtype=">f4"),
    np.zeros((0, 4)),
    np.array(["a", "bc"]),
    np.array(7, dtype=np.int32),
]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_come_back_from_every_protocol(protocol, array):
    found = value_of(load(pickle.dumps(array, protocol), "a.pkl"), "a.pkl")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


def test_arrays_of_numpy_1_come_back():
    array = np.arange(6.0).reshape(2, 3)
    data = old(pickle.dumps(array, 3))
    assert b"numpy.core.multiarray" in data
    np.testing.assert_array_equal(value_of(load(data, "a.pkl"), "a.pkl"), array)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back(protocol):
    plain = {"a": [1, 2.5, "x" * 300, b"y" * 300, None, True, (1,), 10**20], "b": {"c": ()}}
    assert load(pickle.dumps(plain, protocol), "a.pkl") == plain
    assert load(pickle.dumps(OrderedDict(a=1), protocol), "a.pkl") == {"a": 1}
    assert load(pickle.dumps(np.float64(29.92), protocol), "a.pkl") == 29.92


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_with_a_callable_is_refused_without_calling_it(protocol, monkeypatch):
    class Printing:
        def __reduce__(self):
            return print, ("called",)

    called = []
    data = pickle.dumps(Printing(), protocol).replace(b"__builtin__", b"builtins")
    monkeypatch.setattr(builtins, "print", called.append)
    message = r"a\.pkl: its pickle asks for '(builtins|__builtin__)\.print', expected numbers"
    with pytest.raises(ClipError, match=message):
        load(data, "a.pkl")
    assert not called


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80\x02(lp0\n.", "instruction LIST at byte 3"),
        (b"\x80\x02N", "of 3 bytes ends at byte 3"),
        (b"\x80\x02N.N", "of 5 bytes ends at byte 3"),
        (b"\x80\x02X\xff\xff\xff\x7fabc.", "ends at byte"),
        (b"\x80\x02Nq\x09.", "fills a place at byte 3 that it cannot need"),
        (b"\x80\x02]K\x01K\x02s.", "cannot be read"),
        (b"\x80\x02cnumpy\ndtype\n(NN}tb.", "a name is given a state"),
        (b"\x80\x02K\x01Q.", "refers to data outside of it"),
        (b"\x80\x02a.", "cannot be read"),
    ],
)
def test_unsupported_pickle_instructions_are_refused(data, message):
    with pytest.raises(ClipError, match=message) as caught:
        load(data, "a.pkl")
    assert str(caught.value).startswith("a.pkl: its pickle")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((3,), "48 bytes of float64 for an array of shape"),
        ((10**9, 10**9), "48 bytes of float64"),
        ((-1, 6), "48 bytes of float64"),
    ],
)
def test_an_array_whose_bytes_do_not_fit_its_shape_is_refused(change, message):
    state = (1, change, np.dtype("f8"), False, np.arange(6.0).tobytes())

    class Array:
        def __reduce__(self):
            return np.zeros(0).__reduce__()[0], (np.ndarray, (0,), b"b"), state

    with pytest.raises(ClipError, match=message):
        value_of(load(pickle.dumps(Array(), 2), "a.pkl"), "a.pkl")


def test_arrays_of_objects_are_refused():
    array = np.array([{}, {}], dtype=object)
    with pytest.raises(ClipError, match="an array of objects"):
        value_of(load(pickle.dumps(array, 3), "a.pkl"), "a.pkl")
    records = np.zeros(2, dtype=[("a", "f4")])
    with pytest.raises(ClipError, match="expected numbers or text"):
        value_of(load(pickle.dumps(records, 3), "a.pkl"), "a.pkl")
