"""How far a copy or an export is: bytes read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str, int, int], None]  # name of the part, bytes so far, bytes in all


@dataclass
class Tally:
    progress: Progress
    total: int
    done: int = 0

    def add(self, name: str, size: int) -> None:
        self.done += size
        self.progress(name, self.done, self.total)
