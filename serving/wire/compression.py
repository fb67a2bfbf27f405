"""Compressed bodies: `Content-Encoding: gzip` and `deflate`. Pure; the output is bounded."""

from __future__ import annotations

import zlib

from serving.wire.problems import Refusal, invalid, quoted

ACCEPTED = b"gzip, deflate"
GZIP = 31
ZLIB = 15
RAW = -15  # zlib's window bits, which select the format
PIECE = 4096  # bytes fed at once: zlib copies what follows a gzip member, so it is kept short
MAX_MEMBERS = 1024  # of a gzip body: an empty one costs as much time as kilobytes of data


def decompress(body: bytes, encoding: bytes, limit: int) -> bytes:
    """`body` without its coding; `encoding` is the value of Content-Encoding, `limit` is in bytes.

    `deflate` is the zlib format; the raw format, which some clients send under that name, is also
    read. A gzip body may have up to 1,024 members. Raises Refusal: 413 if the output is longer than
    `limit` (at most one byte more is produced); 415 for any other coding and for several; 422 for a
    damaged body.
    """
    coding = encoding.strip().lower()
    if coding in (b"", b"identity"):
        if len(body) > limit:
            raise _too_large(limit)
        return body
    if coding in (b"gzip", b"x-gzip"):
        return _inflate(body, GZIP, limit)
    if coding == b"deflate":
        return _inflate(body, ZLIB if _is_zlib(body) else RAW, limit)
    raise _unknown(encoding).with_header(b"accept-encoding", ACCEPTED)


def _inflate(body: bytes, bits: int, limit: int) -> bytes:
    engine = zlib.decompressobj(bits)
    members = 1
    output = bytearray()
    for start in range(0, len(body), PIECE):
        piece = body[start : start + PIECE]
        while piece:
            if engine.eof:
                if bits != GZIP or members == MAX_MEMBERS:
                    raise _damaged("bytes follow its end")
                engine = zlib.decompressobj(bits)
                members += 1
            try:
                output += engine.decompress(piece, limit + 1 - len(output))
            except zlib.error as error:
                raise _damaged(str(error)) from None
            if len(output) > limit:
                raise _too_large(limit)
            piece = engine.unused_data
    if not engine.eof:
        raise _damaged("it is truncated")
    return bytes(output)


def _is_zlib(body: bytes) -> bool:
    """RFC 1950: method 8 in the low half of the first byte, and a multiple of 31 in both bytes."""
    return len(body) > 1 and body[0] & 15 == 8 and (256 * body[0] + body[1]) % 31 == 0


def _unknown(encoding: bytes) -> Refusal:
    message = f"the content-encoding {quoted(encoding)} is not read here"
    expected = f"one of: {ACCEPTED.decode()}"
    return Refusal(415, "unsupported_encoding", message, "content-encoding", expected)


def _damaged(why: str) -> Refusal:
    message = f"the body cannot be decompressed: {why}"
    return invalid("corrupt_encoding", message, "content-encoding", "a whole body in that coding")


def _too_large(limit: int) -> Refusal:
    message = "the body is too large once it is decompressed"
    return Refusal(413, "body_too_large", message, None, f"at most {limit} bytes")
