"""An action in a forked child under strace, which kills it or fails one of its system calls."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from skills_store.errors import StoreError

# System calls that use the disk, by their names on any architecture.
_DISK = """
    open openat creat read pread64 readv write pwrite64 writev close fsync fdatasync rename renameat
    renameat2 link linkat unlink unlinkat mkdir mkdirat flock stat lstat fstat newfstatat statx
    getdents getdents64 lseek chmod fchmod fchmodat ftruncate access faccessat faccessat2
"""
DISK = frozenset(_DISK.split())
# Of these, the ones that change the disk or open files.
_CHANGES = "open openat write fsync rename renameat link linkat unlink unlinkat mkdir mkdirat"
CHANGES = frozenset(_CHANGES.split())
PR_SET_PTRACER = 0x59616D61
DONE = 0
REFUSED = 3
CRASHED = 4  # how the child ended: normally, with a typed error, with another one

Call = tuple[str, int]  # a system call, and which of the child's calls of that name


def calls(action: Callable[[], object], among: frozenset[str] | None = None) -> list[Call]:
    """Every system call that `action` makes, in order."""
    with tempfile.NamedTemporaryFile("r") as log:
        assert run(action, "-o", log.name) == (DONE, "")
        names = [match[1] for line in log if (match := re.match(r"(?:\d+ +)?(\w+)\(", line))]
    # The child waits for its tracer in the first, and exits by the last.
    made = [n for n in names if n not in ("rt_sigtimedwait", "exit_group")]
    counts = Counter[str]()
    found = []
    for n in made:
        counts[n] += 1
        if among is None or n in among:
            found.append((n, counts[n]))
    return found


def killed(action: Callable[[], object], call: Call) -> bool:
    """Kill -9 at the entry of that call. False: it was not reached."""
    return _injected(action, call, "signal=KILL")[0] == -signal.SIGKILL


def failed(action: Callable[[], object], call: Call, errno: str) -> tuple[int, str]:
    """Fail that call with `errno`; returns how the child ended, and its error."""
    return _injected(action, call, f"error={errno}")


def run(action: Callable[[], object], *options: str) -> tuple[int, str]:
    """The child's exit status, or minus the signal that killed it; and the code and text of its
    typed error.
    """
    reader, writer = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # so that the child cannot miss it
    child = os.fork()
    if child == 0:
        os._exit(_child(action, writer))
    os.close(writer)
    with subprocess.Popen(
        ["strace", "-p", str(child), *options], stderr=subprocess.PIPE, text=True
    ) as tracer:
        assert tracer.stderr is not None
        # strace prints this once the child is stopped. Before that, its calls are not counted.
        attached = "attached" in tracer.stderr.readline()
        os.kill(child, signal.SIGUSR1 if attached else signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    with open(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    if not attached:
        pytest.skip("strace may not trace a process here")
    return os.waitstatus_to_exitcode(status), text


def _injected(action: Callable[[], object], call: Call, what: str) -> tuple[int, str]:
    name, turn = call
    return run(
        action, "-o", os.devnull, "-e", f"trace={name}", "-e", f"inject={name}:{what}:when={turn}"
    )


def _child(action: Callable[[], object], writer: int) -> int:
    # Where only a parent may trace, strace is not one.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, -1, 0, 0, 0)
    signal.sigwait({signal.SIGUSR1})
    try:
        action()
    except StoreError as error:
        os.write(writer, f"{error.code}: {error}".encode())
        return REFUSED
    except BaseException as error:
        os.write(writer, f"{type(error).__name__}: {error}".encode())
        return CRASHED
    return DONE


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def spread(found: list[Call], count: int) -> Iterator[Call]:
    """At most `count` of them, evenly: the short form of an exhaustive test."""
    step = max(1, len(found) // count)
    return iter(found[::step])
