"""The command line as a process: interrupts, and outputs that are closed, full or ASCII only."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skills_store.store import Store
from tests import tiny

ROOT = Path(__file__).parents[2]
SKILLS = [sys.executable, "-m", "skills_store"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    tiny.publish_tiny(store)
    return store


def shell(line: str, store: Store, **env: str) -> subprocess.CompletedProcess[str]:
    """`line` in a shell, where $SKILLS is the program."""
    return subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
        env=os.environ | {"SKILLS": " ".join(SKILLS), "REPERTOIRE_STORE": str(store.root)} | env,
    )


def interrupted(argv: list[str], store: Store, ready: Callable[[], bool]) -> tuple[int | None, str]:
    """Exit status and stderr of a command that gets SIGINT once it is `ready`, after a minute at
    most.

    SIGINT is sent again every 5 s: Python handles one that arrives just before a read blocks only
    with the next.
    """
    # A background shell ignores SIGINT, which a child inherits.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [*SKILLS, "--store", str(store.root), *argv],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        signal.signal(signal.SIGINT, before)
        try:
            until = time.monotonic() + 60
            while not ready():
                assert process.poll() is None, "the command ended too early"
                assert time.monotonic() < until, "the command was never ready"
                time.sleep(0.01)
            for _ in range(12):
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(timeout=5), process.communicate()[1]
            raise AssertionError("SIGINT had no effect")
        finally:
            process.kill()


@contextmanager
def pipe(path: Path) -> Iterator[Callable[[], bool]]:
    """A named pipe without data; yields a function that tells if a process waits to read it."""
    os.mkfifo(path)
    ends: list[int] = []

    def opened() -> bool:
        with contextlib.suppress(OSError):  # ENXIO: no process has
            ends.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return bool(ends)

    try:
        yield opened
    finally:
        for end in ends:
            os.close(end)


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_while_reading_is_one_line_and_130(
    store: Store, tmp_path: Path, as_json: bool
) -> None:
    pytest.importorskip("cryptography")
    argv = [
        "sign",
        "humanoid",
        "--key",
        str(tmp_path / "key"),
        *(["--json"] if as_json else []),
    ]
    with pipe(tmp_path / "key") as opened:
        status, stderr = interrupted(argv, store, opened)
    assert status == 130
    assert (json.loads(stderr)["code"] if as_json else stderr) == (
        "interrupted" if as_json else "skills: interrupted\n"
    )


def test_an_interrupt_while_waiting_for_a_lock_moves_nothing(store: Store) -> None:
    store.alias("humanoid", "canary", 1)
    queue = store.root / "lock/queue"

    def queued() -> bool:
        waiting = [line for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
        return queue.stat().st_ino in {int(line.split()[-3].split(":")[-1]) for line in waiting}

    with queue.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert interrupted(["alias", "humanoid", "prod", "1"], store, queued) == (
            130,
            "skills: interrupted\n",
        )
    assert store.aliases("humanoid") == {"canary": 1}


def test_interrupt_during_imports_prints_no_traceback(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that the commands import blocks, as on a slow disk."""
    (tmp_path / "pydantic.py").write_text(f"open({str(tmp_path / 'slow')!r}).read()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pipe(tmp_path / "slow") as opened:
        assert interrupted(["ls"], store, opened) == (130, "skills: interrupted\n")


def test_characters_outside_the_output_encoding_are_escaped(store: Store) -> None:
    manifest = tiny.skills_manifest().model_copy(update={"licence": "Ré-use, 自由"})
    store.publish(manifest, tiny.skills_files(1))
    done = shell("$SKILLS ls", store, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"R\xe9-use, \u81ea\u7531" in done.stdout
    done = shell("$SKILLS ls --json", store, PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["versions"][0]["licence"] == "Ré-use, 自由"


@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        ("$SKILLS ls >&-", 2, "skills: standard output is closed"),
        ("$SKILLS alias humanoid prod 1 >&-", 2, "skills: standard output is closed"),
        ("$SKILLS ls >/dev/full", 2, "skills: [Errno 28] No space left on device"),
        ("$SKILLS show nobody 2>&-", 2, ""),
        ("{ $SKILLS schema; echo $? >&2; } | true", 0, "0"),
        ("{ $SKILLS --help; echo $? >&2; } | true", 0, "0"),
        ("$SKILLS ls --help >&-", 2, "skills: standard output is closed"),
    ],
)
def test_unwritable_output_gives_at_most_one_error_line(
    store: Store, line: str, status: int, error: str
) -> None:
    done = shell(line, store)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(error)
    assert done.stderr.count("\n") == (1 if error else 0)
    assert store.aliases("humanoid") == {}


def test_an_export_shows_its_progress_on_a_terminal(store: Store, tmp_path: Path) -> None:
    controller, terminal_fd = pty.openpty()
    with open(controller, "rb", buffering=0) as terminal:
        argv = ["--store", str(store.root), "export", "humanoid", "--onnx", str(tmp_path / "out")]
        subprocess.run(
            [*SKILLS, *argv],
            stdout=subprocess.DEVNULL,
            stderr=terminal_fd,
            check=True,
            timeout=60,
            cwd=ROOT,
        )
        os.close(terminal_fd)
        output = terminal.read(2**16).decode()
    assert "read policy.onnx" in output
    assert "wrote manifest.json" in output


def test_the_documented_aliases_run_on_the_bundled_library(tmp_path: Path) -> None:
    """The block of docs/store.md, word for word."""
    text = (ROOT / "docs/store.md").read_text()
    block = text[text.index("## Aliases") :].split("```console\n")[1].split("```")[0]
    steps = [step.partition("\n") for step in block.split("$ ") if step]
    empty = Store(tmp_path / "lab")
    for command, _, output in steps:
        done = shell(command.replace("skills ", "$SKILLS ", 1), empty)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.replace(str(empty.root), "lab") == output
    assert len(steps) > 3
