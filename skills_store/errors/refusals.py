"""One thing that was not done or not accepted, and the one reason."""

from __future__ import annotations

import re

from skills_store.errors.base import StoreError

# obstore's messages end with a debug dump.
DEBUG_TEXT = re.compile(r"\s*Debug source:.*?(?=( \(a moment ago\))?$)", re.DOTALL)


class Refusal(StoreError):
    """One thing that was not done or not accepted, and the one reason."""

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
    """A folder of other files, a file, or nothing where a store was expected."""

    code = "not_a_store"
    template = "{0} is not a store: {1}"


class CorruptBlob(CorruptStore):
    """Bytes that do not have the digest and size they were published with, or are gone."""

    code = "corrupt_blob"


class CorruptRecord(CorruptStore):
    """A version record, alias, lease or manifest that cannot be read as one."""

    code = "corrupt_record"


class UnsupportedLayout(CorruptStore):
    """A store of an earlier program, or of a later one that this program cannot write to or not
    even read.
    """

    code = "unsupported_layout"


class UnsupportedSchema(CorruptStore):
    """A version of a later program, in a store that is otherwise readable."""

    code = "unsupported_schema"


class FailedWrite(Refusal):
    """The disk refused: read-only, full or failing. Nothing was written; the request may be
    repeated.
    """

    code = "not_written"
    template = "{0}: {1}"


class UnconfirmedWrite(Refusal):
    """The write is done and visible, but the disk did not confirm that it survives a power cut."""

    code = "unconfirmed"
    template = "{0}, but the disk did not confirm it ({1}): look before you repeat it"


class BundledVersion(Refusal):
    """A version that comes with the project: it is read beside every store, and changed in none."""

    code = "bundled_version"
    template = "{0}: {1}"


class AppendOnlyStore(Refusal):
    """A store in a bucket has no lock for a safe deletion."""

    code = "append_only"
    template = "{0}: {1} is append-only; delete, lease and gc are for stores on a disk"


class UnreachableOrigin(Refusal):
    """An object store that does not answer or denies access. Cached versions are still served."""

    code = "origin_away"
    template = "{0} cannot be reached: {1}"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, DEBUG_TEXT.sub("", reason))


class UntrustedVersion(Refusal):
    """No trusted key has signed this version, and the policy requires one that did."""

    code = "untrusted"
    template = "{0} is not signed by a trusted key: {1}"


class UnusableKey(Refusal):
    """A file among the trusted keys that is no key."""

    code = "unusable_key"
    template = "{0} {1}"


class NotAnExport(Refusal):
    """A folder that no `export` wrote, or an incomplete export."""

    code = "not_an_export"
    template = "{0} cannot be imported: {1}"


class CheckpointRefusal(Refusal):
    """A foreign checkpoint that holds more than tensors, or not those of a network known here."""

    code = "checkpoint_refused"
