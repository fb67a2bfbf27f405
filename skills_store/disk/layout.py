"""`layout.json`: the layout of a store, and thus which programs may read it and write to it.

A later layout sets `reader` to the least layout that a program must know to read it, and is
read-only here. An earlier layout is refused.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skills_store.disk.durable import Create
from skills_store.errors import UnsupportedLayout

LAYOUT = 3
logger = logging.getLogger("skills_store")


class Layout(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # a later program may add fields

    layout: int = Field(ge=1)
    reader: int = Field(default=1, ge=1)  # the least that a program must know to read it


OURS = Layout(layout=LAYOUT, reader=3).model_dump_json().encode()


def check_readable(root: Path, location: str) -> None:
    """Raises UnsupportedLayout if this program would misread the store. A readable later layout is
    logged.
    """
    marker = _read(root, location)
    if marker.layout < LAYOUT:
        raise UnsupportedLayout(
            location,
            f"its layout is {marker.layout}, of an earlier program; this one reads {LAYOUT}",
        )
    if marker.reader > LAYOUT:
        needed = f"its layout {marker.layout} is read by programs of layout {marker.reader}"
        raise UnsupportedLayout(location, f"{needed}; this one reads {LAYOUT}")
    if marker.layout > LAYOUT:
        logger.warning(
            "%s is of layout %d, this program of %d: read-only here",
            location,
            marker.layout,
            LAYOUT,
        )


def check_writable(root: Path, location: str) -> None:
    marker = _read(root, location)
    if marker.layout > LAYOUT:
        raise UnsupportedLayout(
            location,
            f"its layout is {marker.layout}; this program writes {LAYOUT} and only reads it",
        )


def write_marker(root: Path, location: str, create: Create) -> None:
    """Called before anything else is written to a new store."""
    marker = root / "layout.json"
    if marker.exists():
        return
    with contextlib.suppress(FileExistsError):
        create(marker, OURS, f"{location} is of layout {LAYOUT}")
    check_writable(root, location)  # another process may have written another layout


def _read(root: Path, location: str) -> Layout:
    try:
        data = (root / "layout.json").read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Layout(layout=LAYOUT)
    try:
        return Layout.model_validate_json(data)
    except ValidationError as error:
        text = data[:80].decode("utf-8", "backslashreplace")
        raise UnsupportedLayout(
            location, f"its layout.json is {text!r}, not like {OURS.decode()}"
        ) from error
