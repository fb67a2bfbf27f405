"""The aliases of one skill (`prod`, `canary`): every move is a file of its own, created once and
never changed.

    skills/<name>/moves/prod/00000003.json   the third move of prod: the highest is where it points

The history is the only source: an alias points where its last move does. Of two concurrent moves
one is first, and the other starts from it. `latest` is no alias: it is derived.
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
        """The last move of `alias`, or None if it never existed."""
        rev = self.newest_rev(alias)
        return self._read_move(alias, rev) if rev else None

    def read(self, alias: str) -> AliasMove:
        """The last move of `alias`. Raises CorruptRecord if there is none."""
        return self._read_move(alias, self.newest_rev(alias))

    def read_intact(self) -> Iterator[AliasMove]:
        """The last move of each intact alias; damaged ones are logged and skipped."""
        for alias in self.list_names():
            with _log_damage():
                yield self.read(alias)

    def moves(self, alias: str) -> tuple[AliasMove, ...]:
        """Every intact move, oldest first; the others are logged and skipped."""
        intact, broken = self.survey(alias)
        for error in broken.values():
            logger.warning("%s", error)
        return intact

    def survey(self, alias: str) -> tuple[tuple[AliasMove, ...], dict[int, CorruptRecord]]:
        """The intact moves of `alias`, oldest first, and by rev the error of each missing or
        damaged one.

        Revs have no gap, because a move is only made after the previous one.
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
        """The rev of the last move of `alias`, as in `survey`, readable or not; 0 if there is none.

        Sorts only names of equal width: a service calls this twice a second, however many moves
        there are.
        """
        entries = sorted(_list_folder(self.directory / "moves" / alias), reverse=True)
        return next((int(entry[:8]) for entry in entries if FILE.fullmatch(entry)), 0)

    def history(self) -> Iterator[tuple[AliasMove, ...]]:
        """The moves of each alias, by revision."""
        for alias in self.list_names():
            yield self.moves(alias)

    def move(self, alias: str, decide: Decision, why: str, *, repair: bool = False) -> Version:
        """Move `alias`. `decide` is called again if another process was faster, so its premises
        hold when the move is made.

        Raises CorruptRecord if the last move, which may have protected the alias, cannot be read;
        with `repair` the alias is moved and protected.
        """
        while True:
            # By file names, not contents: a damaged alias is repaired by moving it.
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
            return None  # the alias never existed
        try:
            self.read(alias)
        except CorruptRecord as error:
            ref, what = error.args
            remedy = f"`alias {self.name} {alias} NUMBER --force` repairs it"
            return CorruptRecord(ref, f"{what}, so it may be protected; {remedy}")
        return None

    def _read_last(self, alias: str) -> AliasMove | None:
        """The last intact move."""
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
    """A rollback of `alias` to its last earlier version that is not deleted, by the effective
    moves.

    It undoes every move after that one. Raises NoEarlierVersion if there is none.
    """

    def decide(last: AliasMove | None) -> MoveTarget:
        moves = list_effective(aliases.moves(alias))
        for before, undone in reversed(tuple(pairwise(moves))):
            if last and before.number == last.number:
                continue  # the versions in between are deleted
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
