"""One move of an alias, and the effective moves of a sequence."""

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
    protected: bool | None = None  # after this move; None: never set, so only PROTECTED are
    switches: bool = False  # it changes only `protected`
    forced: bool = False  # without the check of a protected alias


@dataclass(frozen=True)
class MoveTarget:
    """A move's target version, the rev that it undoes, the alias's protection after it, and whether
    its check was skipped.
    """

    version: Version
    undoes: int | None = None
    protected: bool | None = None  # None: unchanged
    forced: bool = False


# Takes the last move of the alias, if there is one.
Decision = Callable[[AliasMove | None], MoveTarget]


def is_protected(last: AliasMove) -> bool:
    """Whether an alias is protected, by its last move."""
    return last.alias in PROTECTED if last.protected is None else last.protected


def list_effective(moves: Sequence[AliasMove]) -> list[AliasMove]:
    """The moves of one alias that no rollback has undone, oldest first, without moves to the same
    version.

    The last one is the current version of the alias; a rollback returns to the one before.
    """
    effective: list[AliasMove] = []
    for move in moves:
        if move.undoes is not None:
            effective = [m for m in effective if m.rev < move.undoes]
        elif not effective or effective[-1].number != move.number:
            effective.append(move)
    return effective
