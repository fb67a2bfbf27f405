"""All bytes of one version, verified, on their way between a store and another place; and writing
them as files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skills_store.errors import FailedWrite, NotAnExport, OccupiedFolder
from skills_store.manifest import Manifest
from skills_store.store import Store
from skills_store.version import Version

# relative path -> bytes; the last file completes the tree, and readers look for it first.
Tree = dict[str, bytes]


@dataclass(frozen=True)
class Bundle:
    """`manifest` is the published JSON byte for byte: the version's digest is its digest."""

    manifest: bytes
    files: Mapping[str, bytes]
    signatures: tuple[bytes, ...] = ()


def read_bundle(
    store: Store, version: Version, read: Callable[[str, int], None] = lambda *_: None
) -> Bundle:
    """Every blob is hashed when it is read; a damaged one is refused before anything is written
    elsewhere.
    """
    files = {}
    for file, blob in version.manifest.files.items():
        files[file] = store.read(version, file)
        read(file, blob.size)
    return Bundle(
        store.manifest_bytes(version),
        files,
        store.signatures(version.name).read_envelopes(version.digest),
    )


def parse_manifest(data: bytes, label: str) -> Manifest:
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise NotAnExport(label, f"it is no manifest ({error.error_count()} faults)") from error


def check_empty(directory: Path) -> None:
    """Raises OccupiedFolder unless `directory` is new or an empty folder."""
    if os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir())):
        raise OccupiedFolder(str(directory))


def write(
    directory: Path, tree: Mapping[str, bytes], wrote: Callable[[str, int], None] = lambda *_: None
) -> None:
    """A new folder is created atomically; an empty one, which may be a mount point, is filled, and
    emptied if that fails.

    A killed write leaves a hidden folder beside a new one; an empty one then lacks its last file,
    so it is no export.
    """
    check_empty(directory)
    new = not directory.exists()
    target = directory.with_name(f".{directory.name}.{uuid.uuid4().hex}") if new else directory
    try:
        for name, data in tree.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            wrote(name, len(data))
        if new:
            target.rename(directory)
    except BaseException as error:
        _remove(target, itself=new)
        if isinstance(error, OSError):
            what = f"{directory} is not written"
            raise FailedWrite(
                what, f"{error.strerror or error}; nothing of it is left, so run it again"
            ) from error
        raise


def _remove(directory: Path, *, itself: bool) -> None:
    """Remove the contents, and with `itself` the folder, as far as possible."""
    for path in directory.iterdir() if directory.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    if itself:
        with contextlib.suppress(OSError):
            directory.rmdir()


def encode_json(value: Any) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
