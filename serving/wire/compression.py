"""Compressed request bodies: `gzip` and `deflate`, of which no more is unpacked than a body may have."""

from __future__ import annotations

import zlib

from serving.problems import Refusal, invalid, quoted

GZIP = zlib.MAX_WBITS | 16
ZLIB = zlib.MAX_WBITS
RAW = -zlib.MAX_WBITS
SUPPORTED = "gzip, deflate"


def decompress(body: bytes, encoding: bytes, limit: int) -> bytes:
    """The body that was compressed, of at most `limit` bytes. Raises Refusal: 413, 415 or 422."""
    name = encoding.decode("latin-1").strip().lower()
    if name in ("", "identity"):
        return body
    if name in ("gzip", "x-gzip"):
        return inflate(body, GZIP, limit)
    if name == "deflate":
        return inflate(body, ZLIB if has_zlib_header(body) else RAW, limit)
    message = f"the body is encoded as {quoted(name)}"
    headers = ((b"accept-encoding", SUPPORTED.encode()),)
    raise Refusal(415, "wrong_encoding", message, "content-encoding", f"one of: {SUPPORTED}", headers=headers)


def inflate(body: bytes, window_bits: int, limit: int) -> bytes:
    unpacker = zlib.decompressobj(window_bits)
    try:
        unpacked = unpacker.decompress(body, limit + 1)
    except zlib.error as error:
        raise invalid("wrong_encoding", f"the body cannot be unpacked: {error}", None, SUPPORTED) from None
    if len(unpacked) > limit:
        raise Refusal(413, "body_too_large", "the unpacked body is too large", None, f"at most {limit} bytes")
    if not unpacker.eof:
        raise invalid("wrong_encoding", "the compressed body ends too early", None, "a whole one")
    if unpacker.unused_data:
        raise invalid("wrong_encoding", "bytes follow the compressed body", None, "one compressed body")
    return unpacked


def has_zlib_header(body: bytes) -> bool:
    """`deflate` is a zlib stream by the standard, and a raw one from some clients (RFC 9110, 8.4.1.2)."""
    return len(body) >= 2 and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
