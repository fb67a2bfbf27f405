"""Arguments of the command line, checked before a store is opened."""

from __future__ import annotations

import re
from pathlib import Path

from skills_store.errors import InvalidArgument


def parse_store(text: str) -> str:
    """Empty text is refused: an unset variable of a shell must not mean the default store."""
    if not text.strip():
        raise InvalidArgument(
            f"{text!r} is no store; expected a folder, s3://bucket/prefix, gs://... or az://..."
        )
    return text


def parse_path(text: str) -> Path:
    """A path. Empty text, which would be the current folder, is refused."""
    if not text.strip():
        raise InvalidArgument(f"{text!r} names no file or folder; write its path")
    return Path(text)


def parse_number(text: str) -> int:
    """A version number. `int` would also accept 1_0 and the digits of other scripts."""
    if not re.fullmatch(r"[1-9][0-9]{0,7}", text):
        raise InvalidArgument(
            f"{text!r} is no version NUMBER; write 1 or more in the digits 0 to 9"
        )
    return int(text)


def parse_words(text: str) -> str:
    """Text for a record. Bytes that are not UTF-8 arrive as lone surrogates, which no file of the
    store can hold.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{text!r} is not in UTF-8; write it in that") from error
    return text


def parse_word(text: str) -> str:
    """A search word. Empty text would match everything."""
    if not text.strip():
        raise InvalidArgument(
            f"{text!r} is no word to search for; write a part of a name, a task or a clip"
        )
    return text.strip()
