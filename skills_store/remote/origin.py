"""The minimal interface of the object store that a local store mirrors.

No object is ever changed or replaced. `create` succeeds once per key, for the first caller: so a
record is the commit point of a publish, and a move the commit point of an alias.
"""

from __future__ import annotations

from typing import Protocol


class Origin(Protocol):
    @property
    def url(self) -> str: ...

    def keys(self, prefix: str) -> list[str]:
        """Every key that begins with `prefix`, which ends with a slash."""
        ...

    def read(self, key: str) -> bytes:
        """Raises KeyError if there is no such key, UnreachableOrigin without an answer."""
        ...

    def create(self, key: str, data: bytes) -> bool:
        """False: the key was taken. Durable on return."""
        ...
