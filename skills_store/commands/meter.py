"""Progress of a copy on one line of a terminal. Silent in logs and pipes."""

from __future__ import annotations

import sys
from typing import TextIO


class Meter:
    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.width = 0

    def __call__(self, name: str, done: int, total: int) -> None:
        if self.stream.isatty():
            line = f"{done / max(total, 1):4.0%}  {done / 1e6:.1f} of {total / 1e6:.1f} MB  {name}"
            self._write(line)

    def close(self) -> None:
        if self.width:
            self._write("")
            self.stream.write("\r")
            self.stream.flush()

    def _write(self, line: str) -> None:
        self.stream.write(f"\r{line.ljust(self.width)}")
        self.stream.flush()
        self.width = len(line)
