"""How people and services name a version: `name`, `name@latest`, `name@7`, `name@prod`,
`name@sha256:<hex>`.

Pure text: checks whether a reference is well formed, never whether it exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from skills_store.errors import InvalidName, InvalidReference
from skills_store.manifest import DIGEST_PATTERN, NAME_PATTERN

LATEST = "latest"
NAME_RULE = "1 to 64 of a-z 0-9 _ -, beginning and ending with a letter or digit"
FILE_RULE = "1 to 128 of A-Z a-z 0-9 . _ -, beginning with a letter or digit"
FILE_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"


@dataclass(frozen=True)
class Reference:
    """`selector` is a version number, a manifest digest, an alias, or `latest`."""

    name: str
    selector: int | str

    @property
    def is_digest(self) -> bool:
        return isinstance(self.selector, str) and self.selector.startswith("sha256:")

    @property
    def is_pinned(self) -> bool:
        """Whether it always means the same version."""
        return isinstance(self.selector, int) or self.is_digest


def parse(text: str) -> Reference:
    name, at, selector = text.partition("@")
    if not is_name(name):
        raise InvalidReference(text, f"a name is {NAME_RULE}")
    if not at:
        return Reference(name, LATEST)
    if re.fullmatch(r"[1-9][0-9]{0,7}", selector):
        return Reference(name, int(selector))
    if selector.startswith("sha256:") and _matches(DIGEST_PATTERN, selector):
        return Reference(name, selector)
    # Digits only are versions, so that "@007" or "@0" is never looked up as an alias.
    if selector.isdigit() or not _matches(NAME_PATTERN, selector):
        raise InvalidReference(text)
    return Reference(name, selector)


def is_name(name: str) -> bool:
    return _matches(NAME_PATTERN, name)


def check_name(name: str) -> str:
    if not is_name(name):
        raise InvalidName("skill", name, NAME_RULE)
    return name


def check_alias(alias: str) -> str:
    if not _matches(NAME_PATTERN, alias):
        raise InvalidName("alias", alias, NAME_RULE)
    if alias == LATEST:
        raise InvalidName(
            "alias", alias, "latest is always the highest version, and cannot be moved"
        )
    if alias.isdigit():
        raise InvalidName("alias", alias, "digits alone are a version number")
    return alias


def check_file(file: str) -> str:
    if not re.fullmatch(FILE_PATTERN, file):
        raise InvalidName("file", file, FILE_RULE)
    return file


def check_files(files: Iterable[str]) -> None:
    """Each must be a valid name, and no two may differ only in case."""
    lower_names: dict[str, str] = {}
    for file in map(check_file, files):
        if (other := lower_names.setdefault(file.lower(), file)) != file:
            raise InvalidName("file", file, f"on some disks it is the same file as {other!r}")


def _matches(pattern: str, text: str) -> bool:
    # fullmatch: in Python `$` also matches before a final newline.
    return re.fullmatch(pattern, text) is not None
