"""Signed envelopes of one skill's versions: stored beside the records, named by digest. Verifies no
signature.

    skills/<name>/signatures/<hex of the manifest digest>.<16 hex of the envelope's own>.json

A digest may have any number of them, from any number of keys. Adding one changes no version.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skills_store.disk.durable import Create
from skills_store.errors import CorruptRecord
from skills_store.version import Fault, make_fault

# An envelope has about 600 bytes; a much larger file is none, and is not read into memory.
LARGEST = 64 * 2**10


@dataclass(frozen=True)
class Signatures:
    directory: Path
    create: Create

    def read_envelopes(self, digest: str) -> tuple[bytes, ...]:
        """Every envelope that was stored for a manifest digest, from any key."""
        try:
            entries = sorted(os.listdir(self.directory))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        paths = [
            self.directory / e
            for e in entries
            if e.startswith(f"{_hex(digest)}.") and e.endswith(".json")
        ]
        return tuple(path.read_bytes() for path in paths if path.stat().st_size <= LARGEST)

    def find_damaged(self) -> Iterator[Fault]:
        """Envelopes whose bytes do not match the digest in their name."""
        for path in sorted(self.directory.glob("*.json")):
            try:
                intact = path.name.endswith(f".{_digest_prefix(path.read_bytes())}.json")
                reason = "" if intact else "its bytes are not those that it is named by"
            except OSError as error:
                reason = f"it cannot be read ({error.strerror})"
            if reason:
                label = f"signature {path.name} of {self.directory.parent.name}"
                yield make_fault(label, CorruptRecord(label, reason))

    def add(self, digest: str, envelope: bytes) -> None:
        """Idempotent: the same envelope has the same name."""
        name = f"{_hex(digest)}.{_digest_prefix(envelope)}.json"
        with contextlib.suppress(FileExistsError):
            self.create(self.directory / name, envelope, f"{digest} is signed")


def _digest_prefix(envelope: bytes) -> str:
    return hashlib.sha256(envelope).hexdigest()[:16]


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
