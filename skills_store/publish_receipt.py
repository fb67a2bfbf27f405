"""A receipt of what a training run published, beside its checkpoint: repeating the same command
publishes nothing twice.

The receipt names the version by digest and is written before the version exists. So after a kill at
any time, the next run finds the version in the store, or a receipt without one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from skills_store.disk.durable import sync_dir
from skills_store.errors import Unknown
from skills_store.manifest import Manifest
from skills_store.publisher import pin
from skills_store.store import Store
from skills_store.version import Version

FILE = "published.json"


def publish(
    folder: Path, store: Store, manifest: Manifest, files: Mapping[str, bytes], samples: int
) -> Version:
    """Publish what a run has made after `samples`, with a receipt in `folder`. Raises OSError if
    that cannot be written, and the store's own errors.
    """
    # a crash leaves the old receipt or the new, never half of one
    new_file = folder / f"{FILE}.new"
    try:
        with new_file.open("w", encoding="utf-8") as file:
            json.dump({"version": pin(manifest, files), "samples": samples}, file)
            file.flush()
            # Synced like the store: after a power cut no version exists without it.
            os.fsync(file.fileno())
        new_file.replace(folder / FILE)
        sync_dir(folder)
    except OSError as error:
        with suppress(OSError):
            new_file.unlink(missing_ok=True)
        raise OSError(
            f"{folder / FILE} not written: {error.strerror or error}; nothing is published"
        ) from error
    return store.publish(manifest, files)


def find_published(folder: Path, store: Store, samples: int) -> Version | None:
    """The version that this run published after `samples`, if `store` still has it. Raises
    ValueError for a damaged receipt.
    """
    file = folder / FILE
    if not file.exists():
        return None
    try:
        receipt = json.loads(file.read_text(encoding="utf-8"))
        version = str(receipt["version"])
        after = receipt["samples"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{file} is no receipt: {error!r}; without it, the run publishes once more"
        ) from None
    if after != samples:
        return None
    try:
        return store.resolve(version)
    except Unknown:
        return None
