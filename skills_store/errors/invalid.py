"""Input that is invalid whatever the store holds."""

from __future__ import annotations

from skills_store.errors.base import StoreError


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
    """A skill, alias or file name outside the permitted letters. It never becomes a path."""

    code = "invalid_name"

    def __init__(self, what: str, name: str, rule: str) -> None:
        super().__init__(what, name, rule)

    def __str__(self) -> str:
        what, name, rule = self.args
        shown = name if len(name) <= 80 else f"{name[:80]}..."
        return f"{shown!r} cannot name {'an' if what == 'alias' else 'a'} {what}: {rule}"


class InvalidArgument(StoreError):
    """An incomplete command line, or an invalid argument."""

    code = "invalid_argument"


class InvalidStore(StoreError):
    """Text that names neither a folder nor a bucket."""

    code = "invalid_store"


class InvalidCondition(StoreError):
    """A `--where` that is no comparison."""

    code = "invalid_condition"


class InvalidDuration(StoreError):
    """A time span that is malformed or out of range."""

    code = "invalid_duration"


class InvalidInput(StoreError):
    """An array that does not fit the graph's declared input."""

    code = "invalid_input"
