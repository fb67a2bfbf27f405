"""Caches verdicts between runs of `check`, so that an interrupted check of many files continues."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pretrain import characters, motion
from pretrain.motion.files import write_whole
from pretrain.motion.verdict import Verdict

VERDICT = TypeAdapter(Verdict)
SOURCES = ("**/*.py", "**/*.xml")  # code and characters that verdicts depend on


@dataclass(frozen=True)
class VerdictCache:
    """A folder with a JSON file per verdict, named by the digest of its inputs: the bytes and the
    name of the file, the character and the source code."""

    folder: Path
    character: str

    def load(self, name: str, data: bytes) -> Verdict | None:
        """The verdict on the file `name` of `data`, or None where none is cached."""
        try:
            return VERDICT.validate_json(self._path(name, data).read_bytes())
        except (OSError, ValidationError):
            return None  # treated as not cached

    def store(self, name: str, data: bytes, verdict: Verdict) -> None:
        """OSError where the folder is not writable."""
        path = self._path(name, data)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(asdict(verdict)).encode())
        except OSError as error:
            why = f"no verdicts can be kept there ({error.strerror})"
            raise OSError(f"{self.folder}: {why}; --no-keep does without") from None

    def _path(self, name: str, data: bytes) -> Path:
        content = hashlib.sha256(data).hexdigest()
        key = json.dumps([name, self.character, content, digest_sources()])
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"


@lru_cache(maxsize=1)
def digest_sources() -> str:
    """Digest of the code and the characters that verdicts depend on."""
    digest = hashlib.sha256()
    for package in (characters, motion):
        folder = Path(next(iter(package.__path__)))
        for pattern in SOURCES:
            for file in sorted(folder.glob(pattern)):
                digest.update(file.read_bytes())
    return digest.hexdigest()
