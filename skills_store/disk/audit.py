"""Checks everything of one skill: records and their chain, manifests, files, aliases, tombstones;
and leases.

A lost file is detected by what refers to it: the next record, a move, a tombstone, a lease. The
last record and the last move of an alias are detected only if one refers to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from skills_store.disk import index, records, tombstones
from skills_store.disk.alias_move import AliasMove
from skills_store.disk.blobs import describe
from skills_store.disk.leases import Leases
from skills_store.disk.skill_versions import SkillVersions
from skills_store.errors import CorruptRecord, CorruptStore, UnknownVersion
from skills_store.version import Fault, Version, make_fault


def check_skill(skill: SkillVersions) -> Iterator[Fault]:
    """Every fault of the skill; none if all is as published."""
    yield from _check_versions(skill)
    yield from check_structure(skill)
    for alias in skill.aliases.list_names():
        for error in skill.aliases.survey(alias)[1].values():
            yield make_fault(f"{skill.name}@{alias}", error)
        try:
            skill.load_by_alias(alias)
        except (CorruptStore, UnknownVersion) as error:
            yield make_fault(f"{skill.name}@{alias}", error)


def check_structure(skill: SkillVersions, settled: frozenset[int] = frozenset()) -> Iterator[Fault]:
    """Lost or inconsistent files, as far as that shows without a blob, except those of versions
    `settled`.

    Of the lost or damaged moves of an alias only the last counts: nothing relies on earlier ones.
    """
    surveys = {alias: skill.aliases.survey(alias) for alias in skill.aliases.list_names()}
    moves = list(chain.from_iterable(intact for intact, _ in surveys.values()))
    for number, error in (*_check_chain(skill), *_check_mentions(skill, moves)):
        if number not in settled:
            yield make_fault(f"{skill.name}@{number}", error)
    for alias, (_, broken) in surveys.items():
        newest = skill.aliases.newest_rev(alias)
        for rev, error in broken.items():
            if rev == newest:
                yield make_fault(f"{skill.name}@{alias}", error)


def check_parents(skills: Sequence[SkillVersions]) -> Iterator[Fault]:
    """A fault for each controller whose library does not exist with the digest it was trained
    on."""
    published = set()
    for skill in skills:
        published |= {(skill.name, skill.digest(number)) for number in skill.numbers()}
    for skill in skills:
        for summary in index.summaries(skill)[0]:
            task = (
                skill.load_live(summary.number).manifest.task
                if summary.kind == "controller"
                else None
            )
            if task and (task.parent.name, task.parent.digest) not in published:
                parent = f"{task.parent.name}@{task.parent.digest}"
                lost = f"the library that it is bound to, {parent}, is not there"
                yield make_fault(summary.ref, CorruptRecord(summary.ref, lost))


def check_blobs(skill: SkillVersions, version: Version) -> Iterator[Fault]:
    for file, blob in version.manifest.files.items():
        try:
            skill.blobs.read(blob, f"{file} of {version.ref}")
        except CorruptStore as error:
            yield make_fault(version.ref, error)


def check_leases(granted: Leases, skill: Callable[[str], SkillVersions]) -> Iterator[Fault]:
    """A fault for each lease that is unreadable or lacks the digest of its version."""
    for id in granted.list_ids():
        try:
            lease = granted.read(id)
            if lease and skill(lease.name).digest(lease.number) != lease.digest:
                raise CorruptRecord(
                    f"lease {id}", f"{lease.ref} is not the version that it was given for"
                )
        except CorruptRecord as error:
            yield make_fault(f"lease {id}", error)


def _check_versions(skill: SkillVersions) -> Iterator[Fault]:
    for number in skill.numbers():
        try:
            version = skill.load(number)
        except CorruptStore as error:
            yield make_fault(f"{skill.name}@{number}", error)
        else:
            yield from check_blobs(skill, version)


# The number of the faulty version, and the fault.
Found = Iterator[tuple[int, CorruptRecord]]


def _check_chain(skill: SkillVersions) -> Found:
    """A fault for each record that is unreadable or not the one that the next record names."""
    digests: dict[int, str] = {}
    for number in skill.list_all_numbers():
        try:
            raw = records.read_raw(skill.records, skill.name, number)
            digests[number] = describe(raw).digest
            prev = records.parse(raw, skill.name, number).prev
        except CorruptRecord as error:
            yield number, error
            continue
        if prev is None:
            continue
        try:
            before = (
                digests.get(number - 1)
                or describe(records.read_raw(skill.records, skill.name, number - 1)).digest
            )
            if before != prev:
                raise CorruptRecord(
                    f"{skill.name}@{number - 1}", "its record is not the one that was published"
                )
        except CorruptRecord as error:
            yield number - 1, error


def _check_mentions(skill: SkillVersions, moves: Iterable[AliasMove]) -> Found:
    """A fault for each move or tombstone whose digest is not that of its version's record."""
    mentions = {(move.number, move.digest): f"move {move.rev} of {move.alias}" for move in moves}
    for number in skill.list_deleted():
        try:
            stone = tombstones.read(skill.records, skill.name, number)
            mentions |= {(number, stone.digest): "its tombstone"} if stone.digest else {}
        except CorruptRecord as error:
            yield number, error
    for (number, digest), mention in mentions.items():
        try:
            if skill.read_record(number).manifest.digest != digest:
                raise CorruptRecord(
                    f"{skill.name}@{number}",
                    f"its record is not the one that {mention} was made for",
                )
        except CorruptRecord as error:
            yield number, error
