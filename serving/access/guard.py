"""Guard: which requests are admitted, and how often; checked before a body is read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from time import monotonic

from serving.access import keys
from serving.wire.problems import Refusal

log = logging.getLogger("repertoire.serving")
OPEN = frozenset({"/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"})
# of all requests where there is no key file
ANYONE = keys.Key(name="anonymous", sha256=keys.NOBODY, scopes=keys.SCOPES)
LONGEST_HOLD = 1.0  # s


@dataclass
class Bucket:
    """A token bucket of one second's worth of requests, and a decaying count of its refusals."""

    rate: float  # 1/s
    tokens: float
    at: float
    refused: float = 0.0  # recent refusals: falls by `rate` per second, to 0

    def take(self, now: float) -> float:
        """0, or the seconds until there is a token."""
        full = max(1.0, self.rate)
        more = (now - self.at) * self.rate
        self.tokens = min(full, self.tokens + more)
        self.refused = max(0.0, self.refused - more)
        self.at = now
        if self.tokens < 1:
            self.refused = min(full, self.refused) + 1
            return (1 - self.tokens) / self.rate
        self.tokens -= 1
        return 0.0

    @property
    def hold(self) -> float:
        """Seconds by which a refusal is delayed: 0 for a single one, up to LONGEST_HOLD for a key
        that keeps exceeding its rate."""
        return min(LONGEST_HOLD, (self.refused - 1) / self.rate)


class KeyRemoved(Exception):
    """A key admitted earlier is no longer in the key file, or another one has its name."""


class Guard:
    """Without a key file every request is admitted: `Settings` allows that on the loopback address
    only.

    `share` is the part of each rate that this process may spend: one over the number of workers.
    """

    def __init__(self, file: Path | None, rate: float | None, share: float) -> None:
        self._file = file
        self._rate = rate
        self._share = share
        self._keys: dict[str, keys.Key] = {}
        self._stamp: tuple[int, int] | None = None
        self._buckets: dict[str, Bucket] = {}
        if file is not None:
            self._load(file)

    def refresh(self) -> None:
        """Reload the key file if it changed. If that fails, keep the old keys and log the error."""
        if self._file is not None:
            try:
                self._load(self._file)
            except (OSError, ValueError) as error:
                log.error("the key file stays as it was: %s", error)

    def admit(self, path: str, headers: Mapping[bytes, bytes]) -> keys.Key:
        """The key of the request. Raises Refusal: 401 without a good key, 403 without its scope,
        404 for a path with a control character, 429 beyond the rate."""
        # A route may match such a path while `required_scope` does not: it compares whole paths.
        if not path.isprintable():
            message = "a path has no control characters"
            raise Refusal(404, "not_found", message, None, "a path of /openapi.json")
        if path in OPEN or (self._file is None and self._rate is None):
            return ANYONE
        key = ANYONE if self._file is None else self._find_permitted_key(path, headers)
        self.spend(key)
        return key

    def _find_permitted_key(self, path: str, headers: Mapping[bytes, bytes]) -> keys.Key:
        key = self._key(headers)
        scope = required_scope(path)
        if scope is not None and scope not in key.scopes:
            message = (
                f"the key {key.name!r} has not the scope {scope!r}, but {', '.join(key.scopes)}"
            )
            raise Refusal(
                403, "not_permitted", message, "authorization", f"a key with the scope {scope!r}"
            )
        return key

    def spend(self, key: keys.Key) -> None:
        """Count one request against the rate of `key`. Raises Refusal (429), and KeyRemoved where
        the file has another secret or other scopes under its name."""
        name = key.name
        if self._file is not None:
            present = self._keys.get(name)
            if present is None or (present.sha256, present.scopes) != (key.sha256, key.scopes):
                raise KeyRemoved(f"the key {name!r} was removed")
            key = present
        rate = key.rate or self._rate
        if rate is None:
            return
        rate = rate * self._share
        now = monotonic()
        bucket = self._buckets.get(name)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[name] = Bucket(rate, max(1.0, rate), now)
        if wait := bucket.take(now):
            message = f"{name} may ask {rate:g} times a second of this worker"
            later = max(1, ceil(wait))
            refusal = Refusal(
                429, "rate_limited", message, None, "fewer requests", retry_after=later
            )
            raise refusal.with_hold(bucket.hold)

    def _key(self, headers: Mapping[bytes, bytes]) -> keys.Key:
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise Refusal(
                401,
                "no_key",
                "this service needs a key",
                "authorization",
                "Authorization: Bearer <key>",
            )
        key = keys.match(token.strip(), self._keys)
        if key is None:
            raise Refusal(401, "wrong_key", "no such key", "authorization", "a key of this service")
        return key

    def _load(self, file: Path) -> None:
        status = file.stat()
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            self._keys = {key.name: key for key in keys.read(file).keys}
            self._stamp = stamp


def required_scope(path: str) -> keys.Scope | None:
    """The scope that a path needs; None: any key will do. A path that does not exist needs a
    key, too."""
    if path == "/metrics":
        return "admin"
    if path == "/encode" or (path.endswith("/infer") and ".encoder" in path):
        return "encode"
    if path in ("/act", "/session", "/interpolate", "/plan") or path.endswith(("/act", "/infer")):
        return "act"
    return None


async def wait_before_refusal(error: Exception) -> float:
    """Sleep for the refusal's `hold`, and return those seconds.

    Without it, a client that repeats refused requests at once costs as much as a served one."""
    seconds = error.hold if isinstance(error, Refusal) else 0.0
    if seconds:
        await asyncio.sleep(seconds)
    return seconds
