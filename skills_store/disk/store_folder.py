"""Whether a folder is a store, may become one, or holds other files and is left alone.

A folder with a `layout.json` is a store. A folder may become one if it is empty, or holds only the
first files of a first write, which may have been killed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from skills_store.errors import NotAStore

FIRST_WRITES = {"lock": re.compile("queue|access"), "staging": re.compile(r"[0-9]+-[0-9a-f]{32}")}
LOST_AND_FOUND = "lost+found"  # of a file system that was made for the store


def is_store(root: Path) -> bool:
    return (root / "layout.json").is_file()


def check(root: Path) -> None:
    """Raises NotAStore if the folder holds other files: a `staging` in it must not be swept."""
    if is_store(root):
        return
    try:
        foreign = sorted(entry for entry in os.listdir(root) if not _is_ignorable(root, entry))
        # Another process may have made it a store since the first check.
        if foreign and not is_store(root):
            named = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
            raise NotAStore(
                str(root),
                f"it holds {named} and no layout.json; name a store, or a new or empty folder",
            )
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise NotAStore(str(root), "it is a file, or lies in one; name a folder") from error


def _is_ignorable(root: Path, entry: str) -> bool:
    if entry in FIRST_WRITES and (root / entry).is_dir():
        return all(FIRST_WRITES[entry].fullmatch(name) for name in os.listdir(root / entry))
    return entry.startswith(".") or entry == LOST_AND_FOUND
