"""A limit on file sizes, in place of a full disk: the kernel refuses what is beyond."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def files_of_at_most(count: int) -> Iterator[None]:
    """Limit each file that this process writes to `count` bytes."""
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
