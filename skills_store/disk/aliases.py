"""The aliases of one skill (`prod`, `canary`): every move is a file of its own, created once and
never changed.

    skills/<name>/moves/prod/00000003.json   the third move of prod: the highest is where it points

So the history is the truth, and what an alias means is its last line; where two move it at once one
is first, and the other moves it from there. `latest` is no alias: it is derived.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from skills_store.disk.alias_move import AliasMove, Decision, MoveTarget, list_effective
from skills_store.disk.durable import Create
from skills_store.disk.records import current_user
from skills_store.errors import CorruptRecord, DeletedVersion, NoEarlierVersion
from skills_store.version import Version

FILE = re.compile(r"([0-9]{8})\.json")
logger = logging.getLogger("skills_store")


@dataclass(frozen=True)
class Aliases:
    name: str
    directory: Path  # skills/<name>
    create: Create

    def list_names(self) -> tuple[str, ...]:
        return tuple(
            alias
            for alias in sorted(_list_folder(self.directory / "moves"))
            if self.newest_rev(alias)
        )

    def find(self, alias: str) -> AliasMove | None:
        """Its last move, or None where it never was an alias."""
        rev = self.newest_rev(alias)
        return self._read_move(alias, rev) if rev else None

    def read(self, alias: str) -> AliasMove:
        """Its last move: what it means. CorruptRecord where there is none."""
        return self._read_move(alias, self.newest_rev(alias))

    def read_intact(self) -> Iterator[AliasMove]:
        """What each intact alias means; a damaged one is reported and passed over."""
        for alias in self.list_names():
            with _log_damage():
                yield self.read(alias)

    def moves(self, alias: str) -> tuple[AliasMove, ...]:
        """Every intact one, oldest first; the others are reported and passed over."""
        intact, broken = self.survey(alias)
        for error in broken.values():
            logger.warning("%s", error)
        return intact

    def survey(self, alias: str) -> tuple[tuple[AliasMove, ...], dict[int, CorruptRecord]]:
        """Its intact moves, oldest first, and by rev why another one is missing or damaged.

        Revs have no gap, for a next move is only made after the one before.
        """
        moves = []
        broken = {}
        for rev in range(1, self.newest_rev(alias) + 1):
            try:
                moves.append(self._read_move(alias, rev))
            except CorruptRecord as error:
                broken[rev] = error
        return tuple(moves), broken

    def newest_rev(self, alias: str) -> int:
        """The rev of its last move, as `survey` has it, whether or not that can be read; 0 where
        there is none.

        By names of one width, highest first: a service asks twice a second, however often an alias
        has moved.
        """
        entries = sorted(_list_folder(self.directory / "moves" / alias), reverse=True)
        return next((int(entry[:8]) for entry in entries if FILE.fullmatch(entry)), 0)

    def history(self) -> Iterator[tuple[AliasMove, ...]]:
        """The moves of each alias, by revision."""
        for alias in self.list_names():
            yield self.moves(alias)

    def move(self, alias: str, decide: Decision, why: str, *, repair: bool = False) -> Version:
        """`decide` is called again where another process was faster, so its premises hold when the
        move is made.

        CorruptRecord where the last move cannot be read, and so may have protected the alias,
        unless it is to `repair` that; then the alias is protected.
        """
        while True:
            # By the files there are, not by what they say: moving a damaged alias is how it is
            # repaired.
            taken = self._list_revs(alias)
            damage = self._find_damage(alias)
            if damage and not repair:
                raise damage
            last = self._read_last(alias)
            target = decide(last)
            before = True if damage else last and last.protected
            move = AliasMove(
                alias=alias,
                rev=max([0, *taken, last.rev if last else 0]) + 1,
                previous=last.number if last else None,
                number=target.version.number,
                digest=target.version.digest,
                at=datetime.now(UTC),
                by=current_user(),
                why=why,
                undoes=target.undoes,
                protected=before if target.protected is None else target.protected,
                switches=target.protected is not None,
                forced=target.forced or damage is not None,
            )
            # Earlier programs of this layout refuse the key `forced`.
            data = move.model_dump_json(exclude=None if move.forced else {"forced"}).encode()
            with contextlib.suppress(FileExistsError):
                done = f"{self.name}@{alias} is {target.version.ref} now"
                self.create(self._path(alias, move.rev), data, done)  # the commit point
                return target.version

    def _find_damage(self, alias: str) -> CorruptRecord | None:
        if not self._list_revs(alias):
            return None  # it never was an alias
        try:
            self.read(alias)
        except CorruptRecord as error:
            ref, what = error.args
            remedy = f"`alias {self.name} {alias} NUMBER --force` repairs it"
            return CorruptRecord(ref, f"{what}, so it may be protected; {remedy}")
        return None

    def _read_last(self, alias: str) -> AliasMove | None:
        """The last intact one."""
        for rev in reversed(self._list_revs(alias)):
            with _log_damage():
                return self._read_move(alias, rev)
        return None

    def _list_revs(self, alias: str) -> list[int]:
        matches = map(FILE.fullmatch, _list_folder(self.directory / "moves" / alias))
        return sorted(int(match[1]) for match in matches if match)

    def _path(self, alias: str, rev: int) -> Path:
        return self.directory / "moves" / alias / f"{rev:08d}.json"

    def _read_move(self, alias: str, rev: int) -> AliasMove:
        path = self._path(alias, rev)
        ref = f"{self.name}@{alias}"
        file = f"its {path.parent.name}/{path.name}"
        try:
            move = AliasMove.model_validate_json(path.read_bytes())
        except OSError as error:
            raise CorruptRecord(ref, f"{file} cannot be read ({error.strerror})") from error
        except ValidationError as error:
            raise CorruptRecord(ref, f"{file} is no move ({error.error_count()} faults)") from error
        if (move.alias, move.rev) != (alias, rev):
            raise CorruptRecord(ref, f"{file} is move {move.rev} of {move.alias!r}")
        return move


def plan_rollback(aliases: Aliases, alias: str, version: Callable[[int], Version]) -> Decision:
    """A rollback: to the last of what `alias` meant before, by the moves that still stand, that is
    not deleted.

    It takes back every move after that one. NoEarlierVersion where there is none.
    """

    def decide(last: AliasMove | None) -> MoveTarget:
        moves = list_effective(aliases.moves(alias))
        for before, undone in reversed(tuple(pairwise(moves))):
            if last and before.number == last.number:
                continue  # what lay between is deleted
            try:
                target = version(before.number)
            except DeletedVersion:
                continue
            if target.digest != before.digest:
                raise CorruptRecord(target.ref, f"it is not the version that {alias} meant before")
            return MoveTarget(target, undoes=undone.rev)
        raise NoEarlierVersion(f"{aliases.name}@{alias}")

    return decide


@contextlib.contextmanager
def _log_damage() -> Iterator[None]:
    try:
        yield
    except CorruptRecord as error:
        logger.warning("%s", error)


def _list_folder(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
