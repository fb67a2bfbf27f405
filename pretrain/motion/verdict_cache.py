"""Verdicts kept between runs of `check`, so that an interrupted check of many files goes on."""

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
SOURCES = ("**/*.py", "**/*.xml")  # what a verdict follows from, beside the file


@dataclass(frozen=True)
class VerdictCache:
    """A folder with a JSON file a verdict, named by what the verdict follows from: the bytes and
    the name of the file, the character and the source code.
    """

    folder: Path
    character: str

    def load(self, name: str, data: bytes) -> Verdict | None:
        """The verdict on the file `name` of `data`, or None where none is kept."""
        try:
            return VERDICT.validate_json(self._path(name, data).read_bytes())
        except (OSError, ValidationError):
            return None  # as where none is kept: it is found anew and kept

    def store(self, name: str, data: bytes, verdict: Verdict) -> None:
        """OSError where the folder takes no file."""
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
    """Of the code and the characters that verdicts follow from."""
    digest = hashlib.sha256()
    for package in (characters, motion):
        folder = Path(next(iter(package.__path__)))
        for pattern in SOURCES:
            for file in sorted(folder.glob(pattern)):
                digest.update(file.read_bytes())
    return digest.hexdigest()
