"""Decompression of request bodies: round trips, limits, corrupt data, unknown encodings."""

import gzip
import json
import random
import zlib
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.wire import compression
from serving.wire.compression import MAX_MEMBERS, PIECE, decompress
from serving.wire.problems import Refusal

TEXT = b'{"state": [0.0, 1.0], "z": [1.0]}' * 20


def raw_deflate(data):
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


CODINGS = {  # name: (value of Content-Encoding, compressor)
    "gzip": (b"gzip", gzip.compress),
    "x-gzip": (b"x-gzip", gzip.compress),
    "zlib": (b"deflate", zlib.compress),
    "raw": (b"deflate", raw_deflate),
    "identity": (b"identity", bytes),
    "none": (b"", bytes),
}
COMPRESSED = {name: CODINGS[name] for name in ("gzip", "zlib", "raw")}


def refusal(body, encoding, limit=10_000):
    with pytest.raises(Refusal) as raised:
        decompress(body, encoding, limit)
    return raised.value


def outcome(body, encoding, limit=10_000):
    """The decompressed bytes, or the status of the refusal."""
    try:
        return decompress(body, encoding, limit)
    except Refusal as found:
        return found.status


@given(st.binary(max_size=3 * PIECE), st.sampled_from(sorted(CODINGS)))
def test_compressed_data_round_trips(data, name):
    encoding, compress = CODINGS[name]
    assert decompress(compress(data), encoding, len(data)) == data


@pytest.mark.parametrize("level", range(10))
@pytest.mark.parametrize("size", [0, 1, 100, PIECE, 100_000])
def test_every_level_of_compression_is_read(level, size):
    data = random.Random(level).randbytes(size)
    assert decompress(zlib.compress(data, level), b"deflate", size) == data
    assert decompress(gzip.compress(data, level), b"gzip", size) == data
    engine = zlib.compressobj(level, wbits=-15)
    assert decompress(engine.compress(data) + engine.flush(), b"deflate", size) == data


@pytest.mark.parametrize("encoding", [b"GZIP", b" gzip ", b"X-Gzip", b"gzip\t"])
def test_encoding_name_is_case_insensitive(encoding):
    assert decompress(gzip.compress(TEXT), encoding, len(TEXT)) == TEXT


def test_a_gzip_body_may_have_several_members():
    members = [random.Random(i).randbytes(i % 7) for i in range(2 * PIECE // 20)]
    body = b"".join(gzip.compress(member) for member in members)
    assert decompress(body, b"gzip", 10_000) == b"".join(members)
    assert refusal(body, b"gzip", limit=100).status == 413
    most = gzip.compress(b"") * MAX_MEMBERS
    assert decompress(most, b"gzip", 0) == b""
    assert refusal(most + gzip.compress(b""), b"gzip").problem.code == "corrupt_encoding"


@pytest.mark.parametrize("name", CODINGS)
def test_one_byte_over_the_limit_is_refused(name):
    encoding, compress = CODINGS[name]
    assert decompress(compress(TEXT), encoding, len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, 1, 0):
        found = refusal(compress(TEXT), encoding, limit)
        assert (found.status, found.problem.code) == (413, "body_too_large")
        assert str(limit) in str(found.problem.expected)


@pytest.mark.parametrize("name", COMPRESSED)
def test_no_more_than_the_limit_is_decompressed(name, monkeypatch):
    """A run of one byte shrinks a thousandfold; its decompression stops at the limit."""
    encoding, compress = CODINGS[name]
    made = []

    def engine_of(bits):
        engine = zlib.decompressobj(bits)

        def recorded(piece, most):
            output = engine.decompress(piece, most)
            made.append(len(output))
            return output

        return SimpleNamespace(decompress=recorded, eof=False)

    counted = SimpleNamespace(decompressobj=engine_of, error=zlib.error)
    monkeypatch.setattr(compression, "zlib", counted)
    body = compress(bytes(200_000))
    assert len(body) < 500
    assert refusal(body, encoding, limit=1000).status == 413
    assert sum(made) == 1001


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_truncated_body_is_refused(name):
    encoding, compress = CODINGS[name]
    body = compress(TEXT)
    for end in range(len(body)):
        found = refusal(body[:end], encoding)
        assert (found.status, found.problem.code) == (422, "corrupt_encoding")


@pytest.mark.parametrize("name", COMPRESSED)
def test_bytes_after_the_end_are_refused(name):
    encoding, compress = CODINGS[name]
    for tail in (b"x", b"\0", b"more" * PIECE):
        assert refusal(compress(TEXT) + tail, encoding).problem.code == "corrupt_encoding"


@pytest.mark.parametrize("name", ["gzip", "zlib"])
def test_a_flipped_bit_is_refused_or_changes_nothing(name):
    """Both formats end with a checksum; a reader ignores some bits of gzip's header."""
    encoding, compress = CODINGS[name]
    body = compress(TEXT)
    seen = Counter()
    for bit in range(8 * len(body)):
        flipped = bytearray(body)
        flipped[bit // 8] ^= 1 << bit % 8
        seen[outcome(bytes(flipped), encoding)] += 1
    assert seen.keys() <= {TEXT, 413, 422}
    assert seen[422] > 6 * len(body)


@given(st.binary(max_size=200), st.sampled_from([b"gzip", b"deflate"]))
def test_bytes_that_are_not_compressed_are_refused_or_read(data, encoding):
    found = outcome(data, encoding, 1000)
    assert found in (413, 422) if isinstance(found, int) else len(found) <= 1000


UNKNOWN = [b"br", b"zstd", b"compress", b"gzip;q=1", b"\xff"]
SEVERAL = [b"gzip, gzip", b"gzip,deflate", b"identity, gzip", b"gzip, identity", b","]


@pytest.mark.parametrize("encoding", [*UNKNOWN, *SEVERAL])
def test_unsupported_encoding_error_lists_the_supported_ones(encoding):
    found = refusal(gzip.compress(TEXT), encoding)
    assert (found.status, found.problem.code) == (415, "unsupported_encoding")
    reply = found.reply("/act")
    assert (reply.status, dict(reply.headers)[b"accept-encoding"]) == (415, b"gzip, deflate")
    assert json.loads(reply.body)["field"] == "content-encoding"
