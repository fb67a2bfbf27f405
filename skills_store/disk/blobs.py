"""Immutable bytes, named by digest: `blobs/sha256/<hex>`, as in an OCI image layout. Independent of
skills.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from skills_store.disk.durable import make_dirs, sync_dir, temporary_file
from skills_store.errors import CorruptBlob
from skills_store.manifest import Blob


def describe(data: bytes) -> Blob:
    return Blob(digest=f"sha256:{hashlib.sha256(data).hexdigest()}", size=len(data))


def read_verified(path: Path, blob: Blob, label: str) -> bytes:
    """The bytes of `path` if they match `blob`, or CorruptBlob."""
    try:
        with path.open("rb") as file:
            # Size first: a blob swapped for a huge file is refused before it fills the memory.
            size = os.fstat(file.fileno()).st_size
            data = file.read() if size == blob.size else None
    except OSError as error:
        raise CorruptBlob(label, f"blob {blob.digest} cannot be read ({error.strerror})") from error
    if data is None or len(data) != blob.size:
        raise CorruptBlob(
            label, f"blob {blob.digest} has {size} bytes, not the {blob.size} published"
        )
    if (actual := describe(data)) != blob:
        raise CorruptBlob(label, f"blob {blob.digest} now hashes to {actual.digest}")
    return data


@dataclass(frozen=True)
class Blobs:
    root: Path
    staging: Path
    fetch: Callable[[Path, Blob, str], bytes] | None = (
        None  # from the origin that this is a cache of
    )

    def path(self, blob: Blob) -> Path:
        return self.root / blob.digest.removeprefix("sha256:")

    def write(self, data: bytes) -> Blob:
        """Idempotent. Durable only after `sync`: a publish of many files syncs once."""
        blob = describe(data)
        make_dirs(self.root)
        make_dirs(self.staging)
        if not self._has(blob):  # also if it is damaged: publishing it again repairs it
            with temporary_file(self.staging, data) as temp:
                os.replace(temp, self.path(blob))
        return blob

    def sync(self) -> None:
        sync_dir(self.root)

    def read(self, blob: Blob, label: str) -> bytes:
        """The published bytes, or CorruptBlob. `label` names the blob in messages."""
        try:
            return read_verified(self.path(blob), blob, label)
        except CorruptBlob:
            if self.fetch is None:
                raise
        data = self.fetch(self.path(blob), blob, label)
        self.write(data)
        return data

    def _has(self, blob: Blob) -> bool:
        try:
            read_verified(self.path(blob), blob, "")
        except CorruptBlob:
            return False
        return True
