"""What a training run published, noted beside its checkpoint: the same command, typed again, publishes nothing twice."""

from __future__ import annotations

import json
from pathlib import Path

from skills_store.errors import Unknown
from skills_store.store import Store
from skills_store.version import Version

FILE = "published.json"


def note(folder: Path, version: Version, samples: int) -> None:
    whole = folder / f"{FILE}.new"  # a crash leaves the old receipt or the new, never half of one
    whole.write_text(json.dumps({"version": version.pinned, "samples": samples}))
    whole.replace(folder / FILE)


def noted(folder: Path, store: Store, samples: int) -> Version | None:
    """The version that this run published after `samples`, if `store` still has it. ValueError of a damaged note."""
    file = folder / FILE
    if not file.exists():
        return None
    try:
        receipt = json.loads(file.read_text())
        version, after = str(receipt["version"]), receipt["samples"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is no receipt: {error!r}; without it, the run publishes once more") from None
    if after != samples:
        return None
    try:
        return store.resolve(version)
    except Unknown:
        return None
