"""Everything the store refuses, in the user's words. Knows no files and no HTTP: the door maps `code` to a status.

Three families hold most of it: Unknown (well named, but not here), Refusal (one thing, one reason) and CorruptStore (not
what was published). The arguments stay in `args`, so that an error survives a trip between processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise

LISTED = 24  # of what exists: a line that nobody reads to its end names nothing


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
        shown = name if len(name) <= 80 else f"{name[:80]}..."
        return f"{shown!r} cannot name {'an' if what == 'alias' else 'a'} {what}: {rule}"


class InvalidArgument(StoreError):
    """A command line that says nothing, or an argument that cannot mean what it is for."""

    code = "invalid_argument"


class InvalidStore(StoreError):
    """Text that names neither a folder nor a bucket."""

    code = "invalid_store"


class NoHomeFolder(StoreError):
    """No folder for the program's own files: none is named, and the user has no home folder."""

    code = "no_home"

    def __init__(self, variable: str) -> None:
        super().__init__(variable)

    def __str__(self) -> str:
        return f"this user has no home folder; set {self.args[0]} to the place to use"


class InvalidCondition(StoreError):
    """A `--where` that compares nothing with nothing."""

    code = "invalid_condition"


class InvalidDuration(StoreError):
    """A time span that is not one, or that no clock holds."""

    code = "invalid_duration"


class InvalidInput(StoreError):
    """An array that does not fit the graph's declared input."""

    code = "invalid_input"


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

    @property
    def choices_text(self) -> str:
        if not self.exists:
            return f"there are no {self.plural}"
        more = f" and {len(self.exists) - LISTED} more" if len(self.exists) > LISTED else ""
        return f"there are: {', '.join(self.exists[:LISTED])}{more}"

    def __str__(self) -> str:
        wanted, _, where = self.args
        hint = f"did you mean {' or '.join(map(repr, self.near))}? " if self.near else ""
        return f"no {self.what} {wanted!r}{' in ' + where if where else ''}; {hint}{self.choices_text}"


class UnknownSkill(Unknown):
    code = "unknown_skill"
    what, plural = "skill", "skills"


class UnknownVersion(Unknown):
    """`exists` holds runs of numbers ("1-7", "9"), and aliases as "prod=3"."""

    code = "unknown_version"
    what, plural = "version", "versions"


class DeletedVersion(UnknownVersion):
    """A number that was a version once: it is never used again, and its tombstone says who took it away."""

    code = "deleted_version"

    def __init__(self, wanted: str, exists: Iterable[str], where: str, details: str = "") -> None:
        StoreError.__init__(self, wanted, tuple(exists), where, details)

    def __str__(self) -> str:
        wanted, _, where, details = self.args
        return f"{where}@{wanted} was deleted {details}; {self.choices_text}"


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


class UnknownLease(Unknown):
    code = "unknown_lease"
    what, plural = "lease", "leases"

    def __str__(self) -> str:
        start = self.args[0]
        meant = [each for each in self.exists if start and each.startswith(start)]
        if len(meant) < 2:
            return super().__str__()
        return f"lease {start!r} is ambiguous: {', '.join(meant[:LISTED])} begin like this; write more of the one"


class UnknownCharacter(Unknown):
    code = "unknown_character"
    what, plural = "character", "characters"


class UnknownTask(Unknown):
    code = "unknown_task"
    what, plural = "task", "tasks"


class UnknownMetric(Unknown):
    """A card measure that no version asked about has."""

    code = "unknown_metric"
    what, plural = "metric", "metrics"


class Refusal(StoreError):
    """One thing that was not done or not taken, and the one reason."""

    code = "refused"
    template = "{0} is refused: {1}"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)

    def __str__(self) -> str:
        return self.template.format(*self.args)


class CorruptStore(Refusal):
    """What is on disk is not what was published."""

    code = "corrupt"


class NotAStore(Refusal):
    """A folder of someone else's, a file, or nothing at all where there ought to be a store."""

    code = "not_a_store"
    template = "{0} is not a store: {1}"


class CorruptBlob(CorruptStore):
    """Bytes that do not have the digest and size they were published with, or are gone."""

    code = "corrupt_blob"


class CorruptRecord(CorruptStore):
    """A version record, alias, lease or manifest that cannot be read as one."""

    code = "corrupt_record"


class UnsupportedLayout(CorruptStore):
    """A store of a later program: this one may read it at most, or not even that."""

    code = "unsupported_layout"


class UnsupportedSchema(CorruptStore):
    """A version of a later program, in a store that this one can read otherwise."""

    code = "unsupported_schema"


class FailedWrite(Refusal):
    """The disk refused: read-only, full or failing. What was asked for is not there, and may be asked for again."""

    code = "not_written"
    template = "{0}: {1}"


class UnconfirmedWrite(Refusal):
    """It is done and everyone sees it, but the disk failed to say that it would survive a power cut."""

    code = "unconfirmed"
    template = "{0}, but the disk did not confirm it ({1}): look before you repeat it"


class UnsafeSweep(StoreError):
    """While one version cannot be read, nobody knows which blobs are its own: nothing is garbage."""

    code = "unsweepable"

    def __str__(self) -> str:
        return f"nothing is swept, for what cannot be read may need it: {self.args[0]}"


class AppendOnlyStore(Refusal):
    """A store in a bucket has no lock under which something could be taken away safely."""

    code = "only_grows"
    template = "{0}: {1} only grows; delete, lease and gc are for stores on a disk"


class UnreachableOrigin(Refusal):
    """An object store that does not answer, or does not let us in. What is in the cache is still served."""

    code = "origin_away"
    template = "{0} cannot be reached: {1}"

    def __init__(self, what: str, reason: str) -> None:
        # What obstore says ends in the structure behind it, for programmers.
        super().__init__(what, re.sub(r"\s*Debug source:.*?(?=( \(a moment ago\))?$)", "", reason, flags=re.DOTALL))


class UntrustedVersion(Refusal):
    """No trusted key has signed this version, and the policy asks for one that did."""

    code = "untrusted"
    template = "{0} is not signed by a trusted key: {1}"


class UnusableKey(Refusal):
    """A file among the trusted keys that is none."""

    code = "unusable_key"
    template = "{0} {1}"


class NotAnExport(Refusal):
    """A folder that no `export` wrote, or not the whole of one."""

    code = "not_an_export"
    template = "{0} cannot be imported: {1}"


class CheckpointRefusal(Refusal):
    """A foreign checkpoint that holds more than tensors, or not those of a network known here."""

    code = "checkpoint_refused"


class GateRefusal(StoreError):
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


class NoEarlierVersion(StoreError):
    """An alias that cannot be rolled back, for it never meant anything else."""

    code = "nothing_before"

    def __str__(self) -> str:
        return f"{self.args[0]} stays where it is: it has meant nothing else before that could be returned to"


class VersionInUse(StoreError):
    """A version that others rely on; it was not deleted."""

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

    def __init__(self, ref: str, digest: str, where: str, other: str, elsewhere: str) -> None:
        super().__init__(ref, digest, where, other, elsewhere)

    def __str__(self) -> str:
        ref, digest, where, other, elsewhere = self.args
        return (
            f"{ref} is {digest} in {where}, but {other} in {elsewhere}; a version never changes, so nothing was copied"
        )


class OccupiedFolder(StoreError):
    """An export would have mixed with files that are there already."""

    code = "occupied_folder"

    def __str__(self) -> str:
        return f"{self.args[0]} is not an empty folder; an export is written into a new or an empty one"


class WrongKind(StoreError):
    """A controller where a skill library was asked for, or the reverse."""

    code = "wrong_kind"

    def __init__(self, ref: str, kind: str, wanted: str) -> None:
        super().__init__(ref, kind, wanted)

    def __str__(self) -> str:
        ref, kind, wanted = self.args
        return f"{ref} is of kind {kind!r}, not {wanted!r}"


class UnusableGraph(StoreError):
    """A graph of the right digest that this machine's runtime cannot run, or a device it does not have."""

    code = "unusable_graph"


def format_ranges(numbers: Sequence[int]) -> tuple[str, ...]:
    """[1, 2, 3, 5] -> ("1-3", "5"): a thousand versions still fit on one line."""
    if not numbers:
        return ()
    ordered = sorted(numbers)
    breaks = [(a, b) for a, b in pairwise(ordered) if b != a + 1]
    starts = [ordered[0], *(b for _, b in breaks)]
    stops = [*(a for a, _ in breaks), ordered[-1]]
    return tuple(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, stops, strict=True))
