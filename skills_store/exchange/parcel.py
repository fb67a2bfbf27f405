"""All bytes of one version, verified, on their way between a store and somewhere else; and the files they become there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skills_store.errors import NotAnExport, OccupiedFolder
from skills_store.manifest import Manifest
from skills_store.store import Store
from skills_store.version import Version

Tree = dict[str, bytes]  # relative path -> bytes; the last one makes it whole, and readers look for it first


@dataclass(frozen=True)
class Parcel:
    """`manifest` is the published JSON byte for byte: the version's digest is its digest."""

    manifest: bytes
    files: Mapping[str, bytes]
    signatures: tuple[bytes, ...] = ()


def packed(store: Store, version: Version, read: Callable[[str, int], None] = lambda *_: None) -> Parcel:
    """Every blob is hashed on the way out; a damaged one is refused here, before anything is written elsewhere."""
    files = {}
    for file, blob in version.manifest.files.items():
        files[file] = store.read(version, file)
        read(file, blob.size)
    return Parcel(store.manifest_bytes(version), files, store.signatures(version.name).of(version.digest))


def manifest_of(data: bytes, where: str) -> Manifest:
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise NotAnExport(where, f"it is no manifest ({error.error_count()} faults)") from error


def write(directory: Path, tree: Mapping[str, bytes]) -> None:
    """Into a new or an empty folder only. What a failed write leaves lacks its last file, so it is no export."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise OccupiedFolder(str(directory))
    for name, data in tree.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def plain_json(value: Any) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
