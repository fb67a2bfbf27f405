"""`layout.json`: of which layout a store is, and so which program may read it and which may write to it.

A later layout that an earlier program would misread says so in `reader`; any other is read, and left alone. Layout 2 moves
aliases by files of their own (see aliases.py), and in layout 3 a move may protect its alias, which a program of layout 2
would not heed. An earlier layout is read as it is, and becomes this one once it is written to.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skills_store.disk.durable import Create, make_dirs, sync_dir, temporary_file
from skills_store.errors import UnsupportedLayout

LAYOUT = 3
logger = logging.getLogger("skills_store")


class Layout(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # a later program may say more

    layout: int = Field(ge=1)
    reader: int = Field(default=1, ge=1)  # the least that a program must know to read it


OURS = Layout(layout=LAYOUT, reader=3).model_dump_json().encode()


def check_readable(root: Path, where: str) -> None:
    """Whatever is read is checked by digest and schema, so the worst that a later layout does here is to be refused."""
    found = _read(root, where)
    if found.reader > LAYOUT:
        raise UnsupportedLayout(
            where,
            f"its layout {found.layout} is read by programs of layout {found.reader}; this one knows {LAYOUT}",
        )
    if found.layout > LAYOUT:
        logger.warning("%s is of layout %d, this program of %d: read-only here", where, found.layout, LAYOUT)


def check_writable(root: Path, where: str) -> None:
    found = _read(root, where)
    if found.layout > LAYOUT:
        raise UnsupportedLayout(where, f"its layout is {found.layout}; this program knows {LAYOUT} and only reads it")


def write_marker(root: Path, where: str, create: Create) -> None:
    """Before the first thing that only this layout has."""
    marker = root / "layout.json"
    if not marker.exists():
        with contextlib.suppress(FileExistsError):
            create(marker, OURS, f"{where} is of layout {LAYOUT}")
        check_writable(root, where)  # another process may have written another one
    elif _read(root, where).layout < LAYOUT:
        make_dirs(root / "staging")
        with temporary_file(root / "staging", OURS) as temp:
            os.replace(temp, marker)
        sync_dir(root)


def _read(root: Path, where: str) -> Layout:
    try:
        data = (root / "layout.json").read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Layout(layout=LAYOUT)
    try:
        return Layout.model_validate_json(data)
    except ValidationError as error:
        raise UnsupportedLayout(where, f"its layout.json is {data[:80]!r}, not like {OURS.decode()}") from error
