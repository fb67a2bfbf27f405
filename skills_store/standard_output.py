"""Standard output of a program whose reader may end first, as in `... | head`."""

from __future__ import annotations

import os
import sys


def discard_output() -> None:
    """Lead what is still buffered, and all that follows, to nothing: otherwise the interpreter
    reports the closed pipe when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
