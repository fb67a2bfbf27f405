"""`python -m pretrain.train` in processes that are forked from one with its imports done."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["pretrain.publishing.publish", "pretrain.help_text", "torch._dynamo"]
)


@dataclass(frozen=True)
class Forked:
    """A process of its own, and the file that it prints to."""

    process: BaseProcess
    output: Path

    def lines(self) -> Iterator[str]:
        """What it prints, line by line until it ends; a line of progress ends in a return."""
        with self.output.open(encoding="utf-8") as file:
            while line := _next_line(file.readline, self.process):
                yield line

    def end(self, seconds: float = 120) -> tuple[int, str]:
        """Exit status, minus the signal if one ended it, and all that it has printed."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"it has not ended after {seconds} s"
        return self.process.exitcode, self.output.read_text(encoding="utf-8")


def fork(output: Path, arguments: Sequence[str]) -> Forked:
    output.touch()
    process = SERVER.Process(target=_train, args=(output, arguments))
    process.start()
    return Forked(process, output)


def _next_line(read, process: BaseProcess) -> str:
    while not (line := read()) and process.is_alive():
        time.sleep(0.002)
    return line


def _train(output: Path, arguments: Sequence[str]) -> None:
    with output.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
    sys.argv = ["pretrain.train", *arguments]
    runpy.run_module("pretrain.train", run_name="__main__", alter_sys=True)
