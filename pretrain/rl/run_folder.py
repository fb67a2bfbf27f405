"""The folder of a training run: resolved configuration, lock, and log in JSON lines and
TensorBoard."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel

METRICS = "metrics.jsonl"

LOCK = "lock"

# Local folders, left out of manifests.
PLACES = {"runs", "store"}

# Keys that do not change what a run learns: with a larger `samples`, the same run is resumed.
NOT_LEARNING = PLACES | {
    "publish",
    "eval",
    "threads",
    "samples",
    "checkpoint_interval",
    "milestone_interval",
}


class RunBusy(ValueError):
    """Another process trains in this folder."""


def hash_config(config: BaseModel, exclude: set[str], data: str = "") -> str:
    """Short digest of a configuration without the fields in `exclude`, and of `data`."""
    text = json.dumps(config.model_dump(mode="json", exclude=exclude), sort_keys=True) + data
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@contextmanager
def lock_run_folder(folder: Path, config: BaseModel) -> Iterator[None]:
    """A run's folder with its resolved configuration, for one process at a time. The kernel
    releases the lock if the process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{error.strerror}; runs= or REPERTOIRE_RUNS names another folder"
        raise OSError(f"no run in {folder}: {reason}") from error
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunBusy(
                f"{folder}: another process trains there, and the same run can't go on twice"
            ) from None
        except OSError as error:
            raise OSError(
                f"{folder / LOCK}: {error.strerror}; runs= needs a file system with locks"
            ) from error
        write_atomically(folder / "config.json", config.model_dump_json(indent=2))
        yield


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically: a kill or a full disk leaves the old file or the new one."""
    temporary = path.with_suffix(".new")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(f"{path} not written: {error.strerror}; it is as it was") from error


def read_log(folder: Path) -> list[dict[str, float]]:
    """The rows of a run's Log. ValueError names the file and the invalid line."""
    path = folder / METRICS
    return [
        _row(path, i, line)
        for i, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
    ]


def _row(path: Path, i: int, line: str) -> dict[str, float]:
    """Line `i` of the log at `path`."""
    try:
        row = json.loads(line)
        row["iteration"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        text = (
            f"{path}, line {i}, is no row of a log; delete this line, "
            "the checkpoint beside it is as it was"
        )
        raise ValueError(text) from error
    return row


class Log:
    """metrics.jsonl, and the same numbers for TensorBoard. A resumed run first removes the rows
    that it will write again."""

    def __init__(self, folder: Path, resume_at: int):
        # here, since it imports tensorboard, which takes 0.3 s
        from pretrain.rl.event_file import EventFile

        folder.mkdir(parents=True, exist_ok=True)
        path = folder / METRICS
        rows = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        if rows and not rows[-1].endswith("}"):
            rows.pop()  # incomplete after a kill
        kept_rows = [
            row for i, row in enumerate(rows, 1) if _row(path, i, row)["iteration"] <= resume_at
        ]
        write_atomically(path, "".join(f"{row}\n" for row in kept_rows))
        self._path = path
        self._file = path.open("a", buffering=1, encoding="utf-8")
        self._events = EventFile(folder / "tensorboard", resume_at + 1)

    def write(self, iteration: int, scalars: dict[str, float]) -> None:
        rounded = {k: x if isinstance(x, int) else float(f"{x:.6g}") for k, x in scalars.items()}
        with _name_log_errors(self._path):
            self._file.write(json.dumps({"iteration": iteration, **rounded}) + "\n")
        with _name_log_errors(self._events.path):
            self._events.write(iteration, rounded)

    def close(self) -> None:
        """Errors are ignored: `write` has raised them already, with a better message."""
        for writer in (self._file, self._events):
            with suppress(OSError):
                writer.close()


@contextmanager
def _name_log_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failure = f"log not written to {path}: {error.strerror or error}"
        raise OSError(f"{failure}; the last checkpoint beside it is as it was") from error
