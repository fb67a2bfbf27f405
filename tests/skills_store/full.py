"""A disk that takes only so much of each file: the kernel itself refuses the rest, after a short
write.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def files_of_at_most(count: int) -> Iterator[None]:
    """In bytes, for whatever this process writes."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


def run_with_files_of_at_most(
    count: int, module: str, arguments: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """`python -m module arguments` in a process that may write `count` bytes a file."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (count, count)),
    )
