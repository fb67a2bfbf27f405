"""Every error of the store, in the user's words. Independent of files and HTTP: a service maps
`code` to a status.

    StoreError
    |- invalid.py     what was typed means nothing
    |    InvalidReference InvalidName InvalidArgument InvalidStore InvalidCondition
    |    InvalidDuration InvalidInput
    |- unknown.py     well named, but not here
    |    Unknown
    |    |- UnknownSkill UnknownAlias UnknownFile UnknownGraph UnknownParent UnknownLease
    |    |  UnknownCharacter UnknownTask UnknownMetric
    |    `- UnknownVersion
    |       `- DeletedVersion
    |- refusals.py    one thing, and the one reason
    |    Refusal
    |    |- NotAStore NotAnExport CheckpointRefusal UnusableKey UntrustedVersion BundledVersion
    |    |  AppendOnlyStore UnreachableOrigin FailedWrite UnconfirmedWrite
    |    `- CorruptStore
    |       `- CorruptBlob CorruptRecord UnsupportedLayout UnsupportedSchema
    `- conflicts.py   not in this state of the store or machine
         GateRefusal Regression NoEarlierVersion VersionInUse NumberConflict OccupiedFolder
         WrongKind UnusableGraph UnsafeSweep NoHomeFolder

A new error is one class with a code of its own in one of these files: `error_codes()` finds it.
Arguments stay in `args`, so that an error survives a trip between processes.
"""

from __future__ import annotations

# callers name every error from here, whichever module it stands in
from skills_store.errors.base import *  # noqa: F403
from skills_store.errors.conflicts import *  # noqa: F403
from skills_store.errors.invalid import *  # noqa: F403
from skills_store.errors.refusals import *  # noqa: F403
from skills_store.errors.unknown import *  # noqa: F403
