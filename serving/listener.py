"""Listener: takes new connections, and leaves them to another worker that has fewer.

All workers listen on one socket. The kernel gives a new connection to whoever asks first, and there it stays: of 64 that
came at once, one of two workers could get them all, and the other had nothing to do.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import mmap
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

from serving.connection import Connection
from serving.metrics import SHARED

log = logging.getLogger("repertoire.serving")
AHEAD = 1  # connections more than another worker has, with which this one still takes the next
ASIDE = 0.002  # s that the other has to take it
EXHAUSTED = 0.5  # s to wait where this process may open no more files


class Crowd:
    """How many connections each worker has, in a file that all of them map. A place in it is of the process that locks it,
    so that the place of one that was killed is free again."""

    ABSENT = -1  # nobody who takes connections

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b", buffering=0)
        self._map = mmap.mmap(self._file.fileno(), 0)
        self._counts = memoryview(self._map).cast("i")
        self._place = next(place for place in range(len(self._counts)) if self._locked(place))
        self._forget_the_dead()

    @staticmethod
    def make(path: Path, workers: int) -> None:
        """Twice as many places: a worker is replaced by one that starts before it ends."""
        path.write_bytes(Crowd.ABSENT.to_bytes(4, "little", signed=True) * 2 * workers)

    def _locked(self, place: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            return False
        return True

    def _forget_the_dead(self) -> None:
        """Who was killed left its count behind, for which the others would step aside ever after."""
        for place in range(len(self._counts)):
            if place != self._place and self._locked(place):
                self._counts[place] = self.ABSENT
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def say(self, connections: int) -> None:
        """How many this worker has."""
        self._counts[self._place] = connections

    def least(self) -> int | None:
        """The fewest that another one has; None where there is no other."""
        others = (count for place, count in enumerate(self._counts) if place != self._place)
        return min((count for count in others if count != self.ABSENT), default=None)

    def close(self) -> None:
        self.say(self.ABSENT)
        self._counts.release()
        self._map.close()
        self._file.close()


class Listener:
    """In the place of asyncio's own `Server`, for one socket."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: socket.socket,
        make: Callable[[], Connection],
        tls: ssl.SSLContext | None,
        crowd: Crowd,
    ) -> None:
        self._loop, self._listening, self._make, self._tls, self._crowd = loop, listening, make, tls, crowd
        self._last: Connection | None = None  # knows how many there are, and whether this process is about to end
        self._closed = False
        self._opening: set[asyncio.Task[Any]] = set()
        listening.setblocking(False)
        crowd.say(0)
        loop.add_reader(listening, self._ready)

    def _ready(self) -> None:
        if self._better_elsewhere():
            self._pause(ASIDE)
        else:
            self._take()

    def _take(self) -> None:
        try:
            taken, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another worker has it, or nobody wants it any more
        except OSError as error:
            log.error("no connection can be taken: %s", error)
            self._pause(EXHAUSTED)
            return
        taken.setblocking(False)
        opening = self._loop.create_task(self._loop.connect_accepted_socket(self._made, taken, ssl=self._tls))
        self._opening.add(opening)
        opening.add_done_callback(self._opened)

    def _better_elsewhere(self) -> bool:
        draining = self._last is not None and self._last.front.door.draining
        here = len(self._last.connections) if self._last is not None else 0
        self._crowd.say(Crowd.ABSENT if draining else here)
        least = self._crowd.least()
        return least is not None and (draining or here > least + AHEAD)

    def _made(self) -> Connection:
        self._last = self._make()
        return self._last

    def _opened(self, opening: asyncio.Task[Any]) -> None:
        self._opening.discard(opening)
        error = None if opening.cancelled() else opening.exception()
        if error is not None and not isinstance(error, OSError):  # a client that left, or speaks no TLS
            log.error("a connection could not be opened", exc_info=error)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listening, self._ready)
            self._take()  # if it is still there

    def close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._listening)
        self._crowd.close()

    async def wait_closed(self) -> None:
        """uvicorn waits for the connections itself."""


class Loop(uvloop.Loop):
    """uvloop's, for one worker of several."""

    async def create_server(  # type: ignore[override]  # of its many forms, uvicorn uses this one
        self,
        protocol_factory: Callable[[], Connection],
        *,
        sock: socket.socket,
        ssl: ssl.SSLContext | None = None,
        backlog: int,
    ) -> Listener:
        sock.listen(backlog)
        return Listener(self, sock, protocol_factory, ssl, Crowd(crowd_file()))


def crowd_file() -> Path:
    return Path(os.environ[SHARED]) / "connections"
