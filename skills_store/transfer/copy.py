"""Copies one version from one store into another, with its parent: blobs first, record last. `push`
and `pull` use this.

The copy keeps number, digest, date and signatures. Its record is the target's own: `prev` is the
digest of the target's previous record, so a store with only version 7 verifies. Aliases are not
copied: the users of each store decide where `prod` points.
"""

from __future__ import annotations

from dataclasses import dataclass

from skills_store.errors import UnknownParent
from skills_store.store import Store
from skills_store.transfer.bundle import read_bundle
from skills_store.transfer.progress import Progress, Tally
from skills_store.version import Version


@dataclass(frozen=True)
class CopiedVersion:
    """A version in the target."""

    version: Version
    new: bool  # False: it was there already


def copy(
    ref: str, source: Store, target: Store, progress: Progress = lambda *_: None
) -> tuple[CopiedVersion, ...]:
    """Copy the version `ref` of `source`, parent first. A number with other bytes in `target` is
    refused before anything is written.
    """
    version = source.resolve(ref)
    family = [version]
    if version.manifest.task is not None:
        family.insert(0, source.parent(version.manifest))
    present = {member: _find_copy(member, version, source, target) for member in family}
    missing = [member for member, there in present.items() if not there]
    tally = Tally(progress, 2 * sum(map(_count_bytes, missing)))  # read once, written once
    copied = []
    for member, there in present.items():
        now = there or _copy_version(member, source, target, tally)
        _copy_signatures(member, now, source, target)
        copied.append(CopiedVersion(now, new=there is None))
    return tuple(copied)


def _copy_version(version: Version, source: Store, target: Store, tally: Tally) -> Version:
    bundle = read_bundle(source, version, lambda file, size: tally.add(f"read {file}", size))
    return target.adopt(
        bundle.manifest, bundle.files, version, lambda file, size: tally.add(f"wrote {file}", size)
    )


def _find_copy(member: Version, version: Version, source: Store, target: Store) -> Version | None:
    if member is not version:
        try:  # a controller is bound to its parent's digest, so any number will do
            parent = target.parent(version.manifest)
            return None if target.is_bundled(parent) else parent
        except UnknownParent:
            pass
    return target.find_same_number(member, source.location)


def _copy_signatures(version: Version, copied: Version, source: Store, target: Store) -> None:
    """Copy the signatures that the target lacks, also of a version that it had before."""
    stored = target.signatures(copied.name).read_envelopes(copied.digest)
    for envelope in source.signatures(version.name).read_envelopes(version.digest):
        if envelope not in stored:
            target.add_signature(copied, envelope)


def _count_bytes(version: Version) -> int:
    return sum(blob.size for blob in version.manifest.files.values())
