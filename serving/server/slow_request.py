"""The reply to a request that does not arrive in time: status 408."""

from __future__ import annotations

from serving.wire.problems import Refusal
from serving.wire.reply import Reply


def make_refusal(part: str, seconds: float) -> Refusal:
    """`part` of the request is "head" or "body"."""
    message = f"the {part} of the request is not complete after {seconds:g} s"
    return Refusal(408, "request_timeout", message, None, f"all of it within {seconds:g} s")


def encode_last_reply(reply: Reply) -> bytes:
    """`reply` with status 408 as HTTP/1.1, the last one of its connection."""
    headers = (
        *reply.headers,
        (b"content-length", b"%d" % len(reply.body)),
        (b"connection", b"close"),
    )
    lines = [b"HTTP/1.1 408 Request Timeout", *(b"%s: %s" % header for header in headers)]
    return b"\r\n".join([*lines, b"", reply.body])
