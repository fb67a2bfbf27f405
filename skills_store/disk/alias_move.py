"""One move of an alias, and what a sequence of moves means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import AwareDatetime

from skills_store.frozen_model import FrozenModel
from skills_store.manifest import Digest, Name
from skills_store.version import Version

PROTECTED = frozenset({"prod"})  # from their first move on, unless `protect --off` ends it


class AliasMove(FrozenModel):
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
    undoes: int | None = None  # the rev that this move takes back, if it is a rollback
    protected: bool | None = None  # from here on; None: never set, so only those of PROTECTED are
    switches: bool = False  # it changes nothing but that
    forced: bool = False  # past the guard of a protected alias, which was not asked


@dataclass(frozen=True)
class MoveTarget:
    """Where a move is to go, the rev that it takes back, if the alias is protected from then on,
    and if no guard was passed.
    """

    version: Version
    undoes: int | None = None
    protected: bool | None = None  # None: as it was
    forced: bool = False


# From the last move of the alias, if there is one.
Decision = Callable[[AliasMove | None], MoveTarget]


def is_protected(last: AliasMove) -> bool:
    """Whether an alias is protected, by its last move."""
    return last.alias in PROTECTED if last.protected is None else last.protected


def list_effective(moves: Sequence[AliasMove]) -> list[AliasMove]:
    """The moves of one alias that no rollback has taken back, oldest first; pointing it at the same
    version is none.

    The last is what the alias means now, and the one before is what a rollback returns to.
    """
    effective: list[AliasMove] = []
    for move in moves:
        if move.undoes is not None:
            effective = [m for m in effective if m.rev < move.undoes]
        elif not effective or effective[-1].number != move.number:
            effective.append(move)
    return effective
