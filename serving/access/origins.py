"""Which `Host` and `Origin` headers are admitted.

A service on a loopback address without keys trusts all local programs, but not pages in a browser
on the same machine. Such a page can reach the address: by a WebSocket or a POST, which browsers
send to any origin, or under a foreign name that resolves to the loopback address (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from serving.wire.problems import Refusal

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
EVERY = "*"


@dataclass(frozen=True)
class Origins:
    hosts: frozenset[str] | None  # lower case, without port; None: any
    origins: frozenset[str]  # besides the host's own

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises Refusal. A request without `Host` passes: browsers always send one."""
        value = headers.get(b"host")
        if self.hosts is None or value is None or host_name(value) in self.hosts:
            return
        expected = f"one of: {', '.join(sorted(self.hosts))}; REPERTOIRE_ALLOWED_HOSTS sets them"
        raise Refusal(403, "not_permitted", "this host name is not served here", "host", expected)

    def check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises Refusal for a page of another origin. A request without `Origin` passes: it is
        from no page."""
        value = headers.get(b"origin")
        if value is None or EVERY in self.origins:
            return
        origin = value.decode("latin-1").lower()
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if origin in self.origins or (host and origin in {f"http://{host}", f"https://{host}"}):
            return
        message = "pages of another origin are not served"
        expected = "the origin of the host itself; REPERTOIRE_ALLOWED_ORIGINS adds others"
        raise Refusal(403, "not_permitted", message, "origin", expected)


def admitted_hosts(allowed: Iterable[str], host: str, has_keys: bool) -> frozenset[str] | None:
    """The accepted `Host` names: `allowed`; if empty, any with keys, else the loopback names and
    `host`."""
    names = frozenset(name.lower() for name in allowed)
    if EVERY in names:
        return None
    if names or has_keys:
        return names or None
    return LOOPBACK_NAMES | {bracketed(host).lower()}


@lru_cache(256)
def host_name(host: bytes) -> str:
    """Lower case, without port. An IPv6 address keeps its brackets."""
    text = host.decode("latin-1").lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]


def bracketed(host: str) -> str:
    """`host` as written in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def normalize_origin(origin: str) -> str:
    """Lower case. Raises ValueError for text that no browser sends as an origin."""
    parts = urlsplit(origin.lower())
    if origin != EVERY and (
        parts.scheme not in ("http", "https") or not parts.netloc or parts.path
    ):
        raise ValueError(
            f"{origin!r} is no origin; expected scheme://host or scheme://host:port, or *"
        )
    return origin.lower()
