"""What a store answers with: a published version, or the fault that keeps one from being served."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from skills_store.errors import StoreError
from skills_store.manifest import Manifest


@dataclass(frozen=True)
class Version:
    """One immutable publication. The digest is the manifest's, and through it that of every file."""

    name: str
    number: int
    digest: str
    created: datetime
    manifest: Manifest = field(compare=False, repr=False)  # the digest says as much, and is hashable

    @property
    def ref(self) -> str:
        return f"{self.name}@{self.number}"

    @property
    def pinned(self) -> str:
        """A reference that means the same bytes in any store."""
        return f"{self.name}@{self.digest}"


@dataclass(frozen=True)
class Fault:
    """Why `ref` is not served."""

    ref: str
    code: str
    message: str


@dataclass(frozen=True)
class Survey:
    """All versions of one skill: those that can be served, and what is wrong with the others."""

    versions: tuple[Version, ...]
    faults: tuple[Fault, ...]


def fault(ref: str, error: StoreError) -> Fault:
    return Fault(ref, error.code, str(error))
