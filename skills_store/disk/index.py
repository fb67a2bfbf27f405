"""`skills/<name>/index.jsonl`: summaries, so that listing 10,000 versions need not parse 10,000
manifests.

Only a cache: an entry is valid while its record and manifest have the time and size that it stores.
A version without a valid entry is read in full. Publishers append, gc rewrites the file; deleting
it costs only time.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from skills_store.disk.durable import make_dirs, temporary_file, write_all
from skills_store.disk.skill_versions import SkillVersions
from skills_store.errors import StoreError
from skills_store.version import Fault, Summary, Version, make_fault, summarize

Stamp = tuple[int, int]  # mtime in ns, bytes


@dataclass(frozen=True, slots=True)
class Entry:
    record: Stamp
    manifest: Stamp
    summary: Summary


LINE = TypeAdapter(Entry)


def summaries(skill: SkillVersions) -> tuple[tuple[Summary, ...], tuple[Fault, ...]]:
    """As `skill.survey`, but only versions without a valid entry are read."""
    entries, faults = _load_current(skill)
    return tuple(entry.summary for entry in entries), faults


def append(skill: SkillVersions, version: Version) -> None:
    """One write, so that lines of several publishers do not mix; not synced: it can be lost."""
    with contextlib.suppress(OSError):
        fd = os.open(_path(skill), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # The first newline ends a line torn by a crash; an empty line is harmless.
            write_all(fd, b"\n" + LINE.dump_json(_make_entry(skill, version)) + b"\n")
        finally:
            os.close(fd)


def rewrite(skill: SkillVersions) -> None:
    data = b"".join(LINE.dump_json(entry) + b"\n" for entry in _load_current(skill)[0])
    with contextlib.suppress(OSError):
        make_dirs(skill.blobs.staging)
        with temporary_file(skill.blobs.staging, data) as temp:
            os.chmod(temp, 0o644)  # the next publisher appends to it
            os.replace(temp, _path(skill))


def _load_current(skill: SkillVersions) -> tuple[list[Entry], tuple[Fault, ...]]:
    cached = _read_entries(_path(skill))
    entries = []
    faults = []
    for number in skill.numbers():
        entry = cached.get(number)
        try:
            fresh = entry and (entry.record, entry.manifest) == _stamp_files(
                skill, number, entry.summary.digest
            )
            entries.append(entry if fresh else _make_entry(skill, skill.load(number)))
        except StoreError as error:
            faults.append(make_fault(f"{skill.name}@{number}", error))
    return entries, tuple(faults)


def _read_entries(path: Path) -> dict[int, Entry]:
    """Entries by number; the last one counts. A torn or foreign line is skipped."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return {}
    entries = {}
    for line in lines:
        with contextlib.suppress(ValidationError):
            entry = LINE.validate_json(line)
            entries[entry.summary.number] = entry
    return entries


def _make_entry(skill: SkillVersions, version: Version) -> Entry:
    record, manifest = _stamp_files(skill, version.number, version.digest)
    return Entry(record=record or (0, 0), manifest=manifest or (0, 0), summary=summarize(version))


def _stamp_files(
    skill: SkillVersions, number: int, digest: str
) -> tuple[Stamp | None, Stamp | None]:
    """Stamps of a version's record and manifest. Paths are text, because a listing makes 20,000."""
    return _stamp_file(f"{skill.directory}/v/{number:08d}.json"), _stamp_file(
        f"{skill.blobs.root}/{digest[7:]}"
    )


def _stamp_file(path: str) -> Stamp | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _path(skill: SkillVersions) -> Path:
    return skill.directory / "index.jsonl"
