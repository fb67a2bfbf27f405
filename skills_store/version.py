"""Results of a store: a published version, its summary, or the fault that keeps it from being
served.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from skills_store.errors import StoreError
from skills_store.manifest import Manifest


@dataclass(frozen=True)
class Version:
    """One immutable publication. The digest is the manifest's, and so covers every file."""

    name: str
    number: int
    digest: str
    created: datetime
    # The digest stands for it, and is hashable.
    manifest: Manifest = field(compare=False, repr=False)

    @property
    def ref(self) -> str:
        return f"{self.name}@{self.number}"

    @property
    def pinned(self) -> str:
        """A reference that means the same bytes in any store."""
        return f"{self.name}@{self.digest}"


@dataclass(frozen=True, slots=True)
class Summary:
    """A version in one row, for listings and the first step of a search."""

    name: str
    number: int
    digest: str
    created: datetime
    kind: str
    character: str
    task: str | None
    licence: str
    bytes: int  # of its files, the manifest not among them

    @property
    def ref(self) -> str:
        return f"{self.name}@{self.number}"


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


def summarize(version: Version) -> Summary:
    manifest = version.manifest
    return Summary(
        name=version.name,
        number=version.number,
        digest=version.digest,
        created=version.created,
        kind=manifest.kind,
        character=manifest.character.name,
        task=manifest.task.name if manifest.task else None,
        licence=manifest.licence,
        bytes=sum(blob.size for blob in manifest.files.values()),
    )


def make_fault(ref: str, error: StoreError) -> Fault:
    return Fault(ref, error.code, str(error))
