"""Conversion of a motion file to the project's .npz, repeated only where its inputs changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pretrain.motion.clip import MotionClip
from pretrain.motion.files import load_file, write_whole
from pretrain.motion.importers import npz
from pretrain.motion.importers.amc import read_bytes


@dataclass(frozen=True)
class Conversion:
    """A file and its .npz. A `source` or `licence` that is not empty replaces that of the file."""

    file: Path
    target: Path
    character: str
    source: str = ""
    licence: str = ""

    @cached_property
    def inputs(self) -> str:
        """Digest of everything that determines the target but the program; ClipError or OSError
        where the file cannot be read."""
        content = hashlib.sha256(read_bytes(self.file)).hexdigest()
        options = [self.character, self.source, self.licence]
        key = json.dumps([self.file.name, content, *options])
        return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"

    def is_done(self) -> bool:
        """Whether the target was converted from the same inputs."""
        return self.target.exists() and self._recorded() == self.inputs

    def find_obstacle(self) -> str:
        """Why an existing target should not be replaced; empty where it may be."""
        if not self.target.exists():
            return ""
        if self.target.samefile(self.file):
            return "it is the input itself"
        return "" if self._recorded() else "it does not name what it was converted from"

    def read(self) -> MotionClip:
        """The clip of the file, with the given source and licence; ClipError or OSError where
        there is none."""
        clip = load_file(self.file, self.character)
        source = self.source or clip.source or self.file.name
        return replace(clip, source=source, licence=self.licence or clip.licence)

    def write(self, clip: MotionClip) -> None:
        """Write `clip` to the target; OSError names it."""
        write_whole(self.target, npz.write(clip, self.inputs))

    def _recorded(self) -> str:
        return npz.read_inputs(self.target.read_bytes(), self.target.name)
