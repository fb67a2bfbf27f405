"""Well-formed names that do not exist here. Every message lists those that do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise

from skills_store.errors.base import StoreError

LISTED = 24  # names in a message; a longer line is not read


class Unknown(StoreError):
    """A well-formed name that does not exist here. The message lists those that do."""

    code = "unknown"
    what = "thing"
    plural = "things"

    def __init__(self, name: str, exists: Iterable[str] = (), location: str = "") -> None:
        super().__init__(name, tuple(exists), location)

    @property
    def exists(self) -> tuple[str, ...]:
        return self.args[1]

    @property
    def near(self) -> tuple[str, ...]:
        """What the user may have meant, best first."""
        return tuple(get_close_matches(self.args[0], self.exists, n=3, cutoff=0.6))

    @property
    def choices_text(self) -> str:
        if not self.exists:
            return f"there are no {self.plural}"
        more = f" and {len(self.exists) - LISTED} more" if len(self.exists) > LISTED else ""
        return f"there are: {', '.join(self.exists[:LISTED])}{more}"

    def __str__(self) -> str:
        name, _, location = self.args
        place = f" in {location}" if location else ""
        near = " or ".join(map(repr, self.near))
        hint = f"did you mean {near}? " if near else ""
        return f"no {self.what} {name!r}{place}; {hint}{self.choices_text}"


class UnknownSkill(Unknown):
    """A name without versions; `what` is the kind of version that it was to name."""

    code = "unknown_skill"
    what = "skill"
    plural = "skills"

    def __init__(
        self, name: str, exists: Iterable[str] = (), location: str = "", what: str = what
    ) -> None:
        super().__init__(name, exists, location)
        self.what = what
        self.plural = f"{what}s"


class UnknownVersion(Unknown):
    """`exists` holds runs of numbers ("1-7", "9"), and aliases as "prod=3"."""

    code = "unknown_version"
    what = "version"
    plural = "versions"


class DeletedVersion(UnknownVersion):
    """A number that was a version once: it is never used again, and its tombstone has the
    operator, the time and the reason.
    """

    code = "deleted_version"

    def __init__(self, name: str, exists: Iterable[str], skill: str, details: str = "") -> None:
        StoreError.__init__(self, name, tuple(exists), skill, details)

    def __str__(self) -> str:
        name, _, skill, details = self.args
        return f"{skill}@{name} was deleted {details}; {self.choices_text}"


class UnknownAlias(Unknown):
    code = "unknown_alias"
    what = "alias"
    plural = "aliases"


class UnknownFile(Unknown):
    code = "unknown_file"
    what = "file"
    plural = "files"


class UnknownGraph(Unknown):
    code = "unknown_graph"
    what = "graph"
    plural = "graphs"


class UnknownParent(Unknown):
    """A controller whose skill version is not in this store: its z would mean nothing."""

    code = "unknown_parent"
    what = "parent"
    plural = "versions of it"


class UnknownLease(Unknown):
    code = "unknown_lease"
    what = "lease"
    plural = "leases"

    def __str__(self) -> str:
        start = self.args[0]
        meant = [each for each in self.exists if start and each.startswith(start)]
        if len(meant) < 2:
            return super().__str__()
        listed = ", ".join(meant[:LISTED])
        return f"lease {start!r} is ambiguous: {listed} begin like this; write more of the one"


class UnknownCharacter(Unknown):
    code = "unknown_character"
    what = "character"
    plural = "characters"


class UnknownTask(Unknown):
    code = "unknown_task"
    what = "task"
    plural = "tasks"


class UnknownMetric(Unknown):
    """A card measure that none of the versions has."""

    code = "unknown_metric"
    what = "metric"
    plural = "metrics"


def format_ranges(numbers: Sequence[int]) -> tuple[str, ...]:
    """[1, 2, 3, 5] -> ("1-3", "5"): a thousand versions still fit on one line."""
    if not numbers:
        return ()
    ordered = sorted(numbers)
    breaks = [(a, b) for a, b in pairwise(ordered) if b != a + 1]
    starts = [ordered[0], *(b for _, b in breaks)]
    stops = [*(a for a, _ in breaks), ordered[-1]]
    return tuple(map(_format_range, starts, stops))


def _format_range(start: int, stop: int) -> str:
    return str(start) if start == stop else f"{start}-{stop}"
