"""Movable names for versions (`prod`, `canary`) and the history of every move. `latest` is none of them.

`alias/prod.json` holds the last move whole, and its rename is the commit. `log.jsonl` follows it; where a crash came
between the two, the history is completed from the alias file, so no move is ever lost.
"""

from __future__ import annotations

import getpass
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, ValidationError

from skills_store.durable import append_line, locked, make_dirs, sync_dir, temporary
from skills_store.errors import CorruptRecord
from skills_store.manifest import Digest, Frozen, Name

logger = logging.getLogger("skills_store")


class AliasMove(Frozen):
    """From version `previous` to `number`, as the alias's `rev`-th move."""

    schema_version: Literal[1] = 1
    alias: Name
    rev: int
    previous: int | None
    number: int
    digest: Digest
    at: AwareDatetime
    by: str
    why: str = ""


@dataclass(frozen=True)
class Aliases:
    """The aliases of one skill."""

    name: str
    directory: Path  # skills/<name>
    staging: Path

    def names(self) -> tuple[str, ...]:
        try:
            entries = os.listdir(self.directory / "alias")
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(sorted(e.removesuffix(".json") for e in entries if e.endswith(".json")))

    def read(self, alias: str) -> AliasMove:
        where = f"{self.name}@{alias}"
        try:
            move = AliasMove.model_validate_json(self._path(alias).read_bytes())
        except OSError as error:
            raise CorruptRecord(where, f"its alias file cannot be read ({error.strerror})") from error
        except ValidationError as error:
            raise CorruptRecord(where, f"its alias file is not one ({error.error_count()} faults)") from error
        if move.alias != alias:
            raise CorruptRecord(where, f"its alias file is that of {move.alias!r}")
        return move

    def readable(self) -> Iterator[AliasMove]:
        """Every intact alias; a damaged one is reported and passed over."""
        for alias in self.names():
            try:
                yield self.read(alias)
            except CorruptRecord as error:
                logger.warning("%s", error)

    def move(self, alias: str, number: int, digest: str, why: str) -> AliasMove:
        make_dirs(self.staging)
        make_dirs(self.directory / "alias")
        with locked(self.directory / "lock"):
            self._complete_log()
            # From the log, not the alias file: moving a damaged alias is how it is repaired.
            before = [m for m in self._logged() if m.alias == alias]
            last = max(before, key=lambda m: m.rev, default=None)
            move = AliasMove(
                alias=alias,
                rev=last.rev + 1 if last else 1,
                previous=last.number if last else None,
                number=number,
                digest=digest,
                at=datetime.now(UTC),
                by=_user(),
                why=why,
            )
            data = move.model_dump_json().encode()
            with temporary(self.staging, data) as temp:
                os.replace(temp, self._path(alias))  # the commit point
            sync_dir(self.directory / "alias")
            append_line(self._log, data)
        return move

    def history(self) -> tuple[AliasMove, ...]:
        """Every move, oldest first."""
        logged = self._logged()
        return (*logged, *self._unlogged(logged))

    @property
    def _log(self) -> Path:
        return self.directory / "log.jsonl"

    def _path(self, alias: str) -> Path:
        return self.directory / "alias" / f"{alias}.json"

    def _logged(self) -> tuple[AliasMove, ...]:
        try:
            lines = self._log.read_bytes().splitlines()
        except FileNotFoundError:
            return ()
        moves = []
        for line in filter(None, lines):
            try:
                moves.append(AliasMove.model_validate_json(line))
            except ValidationError:
                logger.warning("%s: a damaged line in %s is passed over", self.name, self._log)
        return tuple(moves)

    def _unlogged(self, logged: tuple[AliasMove, ...]) -> tuple[AliasMove, ...]:
        known = {(m.alias, m.rev) for m in logged}
        return tuple(m for m in self.readable() if (m.alias, m.rev) not in known)

    def _complete_log(self) -> None:
        for move in self._unlogged(self._logged()):
            append_line(self._log, move.model_dump_json().encode())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry in passwd
        return str(os.getuid())
