"""Event files for TensorBoard, written in the calling thread. TensorBoard's writer has its own
thread, which prints a traceback when the disk is full."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

# generated protobuf modules, whose classes are made at import
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.summary.writer.record_writer import RecordWriter

PREFIX = "events.out.tfevents."


class EventFile:
    """A new event file in `folder`. From `purge_step` on it replaces earlier files."""

    def __init__(self, folder: Path, purge_step: int):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{PREFIX}{_next_number(folder)}.{socket.gethostname()}.{os.getpid()}"
        start = SessionLog(status=SessionLog.START)
        # written before the first scalars
        self._head = [
            Event(step=purge_step, file_version="brain.Event:2"),
            Event(step=purge_step, session_log=start),
        ]
        self._records = RecordWriter(self.path.open("xb"))

    def write(self, step: int, scalars: dict[str, float]) -> None:
        values = (Summary.Value(tag=key, simple_value=x) for key, x in scalars.items())
        head = self._head
        self._head = []
        for event in (*head, Event(step=step, summary=Summary(value=values))):
            event.wall_time = time.time()
            self._records.write(event.SerializeToString())
        self._records.flush()

    def close(self) -> None:
        self._records.close()


def _next_number(folder: Path) -> int:
    """The number in the next event file's name: ns since 1970, but above those that exist.

    TensorBoard reads the files by name, so the file of a resumed run must be last, also where the
    clock was set back."""
    existing = [
        file.name.removeprefix(PREFIX).partition(".")[0] for file in folder.glob(f"{PREFIX}*")
    ]
    return max([time.time_ns(), *(int(number) + 1 for number in existing if number.isdecimal())])
