"""A request that the present state of the store or of this machine does not allow."""

from __future__ import annotations

from collections.abc import Sequence

from skills_store.errors.base import StoreError


class NoHomeFolder(StoreError):
    """No folder for the program's own files: none is named, and the user has no home folder."""

    code = "no_home"

    def __init__(self, variable: str) -> None:
        super().__init__(variable)

    def __str__(self) -> str:
        return f"this user has no home folder; set {self.args[0]} to the place to use"


class UnsafeSweep(StoreError):
    """While one version cannot be read, its blobs are unknown, so nothing can be called garbage."""

    code = "unsweepable"

    def __str__(self) -> str:
        return f"nothing is swept, for what cannot be read may need it: {self.args[0]}"


class GateRefusal(StoreError):
    """A publish of something unsafe or inconsistent. Has all reasons; nothing was published."""

    code = "gate_refused"

    def __init__(self, what: str, reasons: Sequence[str]) -> None:
        super().__init__(what, tuple(reasons))

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.args[1]

    def __str__(self) -> str:
        return f"{self.args[0]} is not admitted: {'; '.join(self.reasons)}"


class Regression(StoreError):
    """A protected alias was not moved to a version that is measurably worse."""

    code = "regression"

    def __init__(self, target: str, ref: str, current: str, worse: Sequence[str]) -> None:
        super().__init__(target, ref, current, tuple(worse))

    @property
    def worse(self) -> tuple[str, ...]:
        return self.args[3]

    def __str__(self) -> str:
        target, ref, current, worse = self.args
        reasons = "; ".join(worse)
        return f"{target} stays at {current}: {ref} is worse in {reasons}. --force moves it anyway"


class NoEarlierVersion(StoreError):
    """An alias that cannot be rolled back: it has no earlier version."""

    code = "nothing_before"

    def __str__(self) -> str:
        return f"{self.args[0]} stays where it is: it has meant nothing else before"


class VersionInUse(StoreError):
    """A version that something refers to; it was not deleted."""

    code = "in_use"

    def __init__(self, ref: str, references: Sequence[str]) -> None:
        super().__init__(ref, tuple(references))

    @property
    def references(self) -> tuple[str, ...]:
        return self.args[1]

    def __str__(self) -> str:
        return f"{self.args[0]} is not deleted: {'; '.join(self.references)}"


class NumberConflict(StoreError):
    """Two stores gave one number to different bytes. Neither is overwritten; nothing was copied."""

    code = "number_taken"

    def __init__(
        self, ref: str, digest: str, location: str, other_digest: str, other_location: str
    ) -> None:
        super().__init__(ref, digest, location, other_digest, other_location)

    def __str__(self) -> str:
        ref, digest, location, other_digest, other_location = self.args
        difference = f"{ref} is {digest} in {location}, but {other_digest} in {other_location}"
        return f"{difference}; a version never changes, so nothing was copied"


class OccupiedFolder(StoreError):
    """An export would have mixed with files that are there already."""

    code = "occupied_folder"

    def __str__(self) -> str:
        return f"{self.args[0]} is not an empty folder; an export needs a new or an empty one"


class WrongKind(StoreError):
    """A controller where a skill library was expected, or the reverse."""

    code = "wrong_kind"

    def __init__(self, ref: str, kind: str, expected: str, advice: str = "") -> None:
        super().__init__(ref, kind, expected, advice)

    def __str__(self) -> str:
        ref, kind, expected, advice = self.args
        message = f"{ref} is of kind {kind!r}, not {expected!r}"
        return f"{message}; {advice}" if advice else message


class UnusableGraph(StoreError):
    """A graph of the right digest that this machine's runtime cannot run, or a device it does not
    have.
    """

    code = "unusable_graph"
