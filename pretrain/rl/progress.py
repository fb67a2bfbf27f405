"""Progress of a training run on the terminal, and its interruption by a signal."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any


class Progress:
    """A bar with the time left on a terminal; elsewhere a line every `interval` seconds."""

    def __init__(self, total: int, done: int, label: str, interval: float = 15.0):
        self._total = total
        self._label = label
        self._interval = interval
        self._first = done
        self._started = time.monotonic()
        self._shown = 0.0
        self._bar = _bar(total, done, label) if sys.stderr.isatty() else None

    def update(self, done: int, note: str) -> None:
        if self._bar is not None:
            self._bar(done, note)
            return
        now = time.monotonic()
        if now - self._shown >= self._interval or done >= self._total:
            self._shown = now
            rate = (done - self._first) / max(now - self._started, 1e-9)
            minutes = max(0, self._total - done) / max(rate, 1e-9) / 60
            # the last iteration may exceed the total
            share = f"{self._label} {min(1.0, done / self._total):6.1%}"
            print(f"{share}  {rate:,.0f}/s  {minutes:.1f} min left  {note}", flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar(None, "")


def _bar(total: int, done: int, label: str) -> Callable[[int | None, str], None]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Rich

    columns = (
        TextColumn(label),
        BarColumn(),
        TextColumn("{task.percentage:>5.1f}%"),
        TimeElapsedColumn(),
    )
    bar = Rich(
        *columns,
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
    )
    bar.start()
    task = bar.add_task(label, total=total, completed=done, note="")

    def show(done: int | None, note: str) -> None:
        if done is None:
            bar.stop()
        else:
            bar.update(task, completed=done, note=note)

    return show


class Interrupt:
    """Turns Ctrl-C and SIGTERM into a flag that a loop reads between iterations, so that it can
    save and stop."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: object) -> None:
        self.requested = True
