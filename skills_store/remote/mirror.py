"""A local store as the cache of an origin: same layout, key for key, so cached files are served as
they are.

An origin's objects never change, so the cache is never stale: a refresh lists the keys and
downloads new ones. A key outside the layout never becomes a path, and downloaded bytes are checked
when they are read.
"""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skills_store.disk import durable
from skills_store.disk.blobs import describe
from skills_store.errors import CorruptBlob, CorruptRecord, UnconfirmedWrite, UnreachableOrigin
from skills_store.manifest import Blob
from skills_store.reference import NAME_PATTERN
from skills_store.remote.origin import Origin

_NAME = NAME_PATTERN.strip("^$")
MIRRORED = re.compile(
    rf"skills/{_NAME}/(v/[0-9]{{8}}|moves/{_NAME}/[0-9]{{8}}|signatures/[0-9a-f]{{64}}\.[0-9a-f]{{16}})\.json|layout\.json"
)


@dataclass(frozen=True)
class Mirror:
    origin: Origin
    root: Path  # of the local store
    staging: Path

    def refresh(self, prefix: str) -> None:
        """Download records, moves and signatures under `prefix` that are missing here. Blobs are
        fetched when they are read.
        """
        for key in ("layout.json", *self.origin.keys(prefix)):
            if MIRRORED.fullmatch(key) and not (self.root / key).exists():
                with contextlib.suppress(KeyError):  # an unused origin has no layout
                    self._download(key)

    def find_departures(self, fresh: Path) -> Iterator[tuple[str, CorruptRecord]]:
        """Keys of records, moves and signatures here that are missing or different in a `fresh`
        cache of the origin.
        """
        for path in sorted((self.root / "skills").rglob("*.json")):
            key = self._key(path)
            if not MIRRORED.fullmatch(key) or _read_or_none(fresh / key) == path.read_bytes():
                continue
            try:
                # Otherwise it was added after `fresh` was filled.
                if self.origin.read(key) != path.read_bytes():
                    yield (
                        key,
                        CorruptRecord(
                            key, f"the cache has other bytes of it than {self.origin.url}"
                        ),
                    )
            except KeyError:
                yield (
                    key,
                    CorruptRecord(key, f"the cache has it, but {self.origin.url} no longer does"),
                )

    def create(self, path: Path, data: bytes, done: str) -> None:
        """Create a file in the origin, then here. Raises FileExistsError if another process was
        faster; its file is here then.
        """
        key = self._key(path)
        created = self.origin.create(key, data)
        try:
            if not path.exists():
                self._download(key)  # which also reads a write back
        except (UnreachableOrigin, OSError) as error:
            raise UnconfirmedWrite(done, str(error)) if created else error from error
        # The same bytes are our own: a response was lost, and the request was retried.
        if not created and path.read_bytes() != data:
            raise FileExistsError(errno.EEXIST, "it is taken", key)

    def upload_blob(self, path: Path, blob: Blob) -> None:
        """Upload a blob of this store, and read it back to verify it."""
        self.origin.create(self._key(path), path.read_bytes())
        self._read(path, blob, f"blob {blob.digest} of {self.origin.url}")

    def fetch(self, path: Path, blob: Blob, label: str) -> bytes:
        """The published bytes, from the origin, or CorruptBlob."""
        try:
            return self._read(path, blob, label)
        except KeyError as error:
            raise CorruptBlob(label, f"blob {blob.digest} is not in {self.origin.url}") from error

    def _read(self, path: Path, blob: Blob, label: str) -> bytes:
        data = self.origin.read(self._key(path))
        if (actual := describe(data)) != blob:
            raise CorruptBlob(
                label, f"blob {blob.digest} hashes to {actual.digest} in {self.origin.url}"
            )
        return data

    def _download(self, key: str) -> None:
        with contextlib.suppress(FileExistsError):  # another process of this machine was faster
            durable.create(self.staging, self.root / key, self.origin.read(key), f"{key} is cached")

    def _key(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _read_or_none(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
