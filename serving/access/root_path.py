"""The path under which a reverse proxy publishes the service, so that the service's own links work
there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import Scope

FORWARDED_PREFIX = b"x-forwarded-prefix"
PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")


@dataclass(frozen=True)
class RootPath:
    root_path: str  # "" or "/rep"
    trusted_proxies: tuple[str, ...]  # addresses whose X-Forwarded-Prefix is used

    def apply(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        """The request's path below the root. `scope` gets `root_path` and `path` as ASGI defines
        them.

        A proxy may strip the prefix or keep it: `/rep/act` and `/act` are the same request. The
        server's own root path (`uvicorn --root-path`) applies if there is no other prefix; a proxy
        must then strip the prefix.
        """
        path: str = scope["path"]
        of_server: str = scope.get("root_path", "").rstrip("/")
        if not (self.root_path or of_server) and FORWARDED_PREFIX not in headers:
            return path
        prefix = self._find_prefix(scope, headers) or of_server
        below = path[len(prefix) :] if path == prefix or path.startswith(f"{prefix}/") else path
        below = below or "/"
        scope["root_path"] = prefix
        scope["path"] = prefix + below
        return below

    def _find_prefix(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        value = headers.get(FORWARDED_PREFIX)
        if value is None:
            return self.root_path
        client = scope.get("client")
        if client is None or client[0] not in self.trusted_proxies:
            return self.root_path
        prefix = value.decode("latin-1").rstrip("/")
        return prefix if PREFIX.fullmatch(prefix) else self.root_path
