"""Everything the store refuses, in the user's words. Knows no files and no HTTP: the door maps `code` to a status.

The arguments stay in `args`, so that an error survives a trip between processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise


class StoreError(Exception):
    """Any refusal of the store. `code` is for programs, `str()` is one line for people."""

    code = "store_error"


class InvalidReference(StoreError):
    """Text that cannot name a version, whatever the store holds."""

    code = "invalid_reference"

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text, reason)

    def __str__(self) -> str:
        text, reason = self.args
        return (
            f"{text!r} is not a reference{': ' + reason if reason else ''}; "
            "write name, name@latest, name@7, name@prod or name@sha256:<64 hex digits>"
        )


class InvalidName(StoreError):
    """A skill, alias or file name outside the permitted letters: such a name never becomes a path."""

    code = "invalid_name"

    def __init__(self, what: str, name: str, rule: str) -> None:
        super().__init__(what, name, rule)

    def __str__(self) -> str:
        what, name, rule = self.args
        return f"{name!r} cannot name a {what}: {rule}"


class Unknown(StoreError):
    """Something well named that is not here. The message says what is."""

    code = "unknown"
    what = "thing"
    plural = "things"

    def __init__(self, wanted: str, exists: Iterable[str] = (), where: str = "") -> None:
        super().__init__(wanted, tuple(exists), where)

    @property
    def exists(self) -> tuple[str, ...]:
        return self.args[1]

    @property
    def near(self) -> tuple[str, ...]:
        """What the user may have meant, best first."""
        return tuple(get_close_matches(self.args[0], self.exists, n=3, cutoff=0.6))

    def __str__(self) -> str:
        wanted, exists, where = self.args
        hint = f"did you mean {' or '.join(map(repr, self.near))}? " if self.near else ""
        listed = f"there are: {', '.join(exists)}" if exists else f"there are no {self.plural}"
        return f"no {self.what} {wanted!r}{' in ' + where if where else ''}; {hint}{listed}"


class UnknownSkill(Unknown):
    code = "unknown_skill"
    what, plural = "skill", "skills"


class UnknownVersion(Unknown):
    """`exists` holds runs of numbers ("1-7", "9"), and aliases as "prod=3"."""

    code = "unknown_version"
    what, plural = "version", "versions"


class UnknownAlias(Unknown):
    code = "unknown_alias"
    what, plural = "alias", "aliases"


class UnknownFile(Unknown):
    code = "unknown_file"
    what, plural = "file", "files"


class UnknownGraph(Unknown):
    code = "unknown_graph"
    what, plural = "graph", "graphs"


class UnknownParent(Unknown):
    """A controller whose skill version is not in this store: its z would mean nothing."""

    code = "unknown_parent"
    what, plural = "parent", "versions of it"


class CorruptStore(StoreError):
    """What is on disk is not what was published."""

    code = "corrupt"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)

    def __str__(self) -> str:
        where, reason = self.args
        return f"{where} is refused: {reason}"


class CorruptBlob(CorruptStore):
    """Bytes that do not have the digest and size they were published with, or are gone."""

    code = "corrupt_blob"


class CorruptRecord(CorruptStore):
    """A version record, alias or manifest that cannot be read as one."""

    code = "corrupt_record"


class UnsupportedLayout(CorruptStore):
    """A store written by a later program."""

    code = "unsupported_layout"


class GateRefused(StoreError):
    """A publish that would have served something unsafe or untrue. All reasons at once; nothing was published."""

    code = "gate_refused"

    def __init__(self, what: str, reasons: Sequence[str]) -> None:
        super().__init__(what, tuple(reasons))

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.args[1]

    def __str__(self) -> str:
        return f"{self.args[0]} is not admitted: {'; '.join(self.reasons)}"


class Regression(StoreError):
    """A guarded alias was asked to move to a version that is measurably worse; it was not moved."""

    code = "regression"

    def __init__(self, target: str, ref: str, current: str, worse: Sequence[str]) -> None:
        super().__init__(target, ref, current, tuple(worse))

    @property
    def worse(self) -> tuple[str, ...]:
        return self.args[3]

    def __str__(self) -> str:
        target, ref, current, worse = self.args
        return f"{target} stays at {current}: {ref} is worse in {'; '.join(worse)}. --force moves it all the same"


class WrongKind(StoreError):
    """A controller where a skill library was asked for, or the reverse."""

    code = "wrong_kind"

    def __init__(self, ref: str, kind: str, wanted: str) -> None:
        super().__init__(ref, kind, wanted)

    def __str__(self) -> str:
        ref, kind, wanted = self.args
        return f"{ref} is of kind {kind!r}, not {wanted!r}"


class InvalidInput(StoreError):
    """An array that does not fit the graph's declared input."""

    code = "invalid_input"


class UnusableGraph(StoreError):
    """A graph of the right digest that this machine's runtime cannot run, or a device it does not have."""

    code = "unusable_graph"


def runs(numbers: Sequence[int]) -> tuple[str, ...]:
    """[1, 2, 3, 5] -> ("1-3", "5"): a thousand versions still fit on one line."""
    if not numbers:
        return ()
    ordered = sorted(numbers)
    breaks = [(a, b) for a, b in pairwise(ordered) if b != a + 1]
    starts = [ordered[0], *(b for _, b in breaks)]
    stops = [*(a for a, _ in breaks), ordered[-1]]
    return tuple(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, stops, strict=True))
