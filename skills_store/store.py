"""The skill store: versions that never change, on a disk or in a bucket. Serves nothing unverified.

A publish writes and syncs its blobs first and its record last, so a version is there whole or not at all, without any
repair on opening. Reading takes no lock and writes nothing: a store may be mounted read-only. How it lies on the disk is
in docs/store.md.

With an origin, all of this is the cache of a bucket of the same layout: what makes something exist is created there first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from skills_store import admission, places, reference, verification
from skills_store.admission import guard
from skills_store.disk import garbage, history, index, place, records, tombstones
from skills_store.disk.aliases import AliasMove, back, guarded
from skills_store.disk.blobs import describe
from skills_store.disk.garbage import GRACE, Garbage
from skills_store.disk.holders import holders
from skills_store.disk.leases import Lease, checked_span
from skills_store.disk.records import Record
from skills_store.disk.shelf import Shelf
from skills_store.disk.tombstones import Tombstone
from skills_store.errors import (
    GateRefused,
    InUse,
    InvalidReference,
    NumberTaken,
    StoreError,
    UnknownAlias,
    UnknownFile,
    UnknownParent,
    UnknownSkill,
    UnknownVersion,
)
from skills_store.manifest import Blob, Manifest
from skills_store.premises import premises
from skills_store.remote.origin import Origin
from skills_store.trust.signatures import Signatures
from skills_store.version import Fault, Summary, Survey, Version

__all__ = ["Fault", "Store", "Survey", "Version", "default_root"]

BUNDLED = Path(__file__).parent / "bundled"  # the library that comes with the project: read it, never publish there
logger = logging.getLogger("skills_store")

Kept = Callable[[str, int], None]  # of a file that is in the store now, its name and bytes


def default_root() -> Path:
    """$REPERTOIRE_STORE, or what skills_store/places.py has for it."""
    return places.store()


def _now() -> datetime:
    return datetime.now(UTC)


def _unwatched(file: str, size: int) -> None:
    pass


class Store:
    """Stateless: every call reads the disk, so any number of processes may share one root."""

    def __init__(self, root: Path | str, origin: Origin | None = None, *, clock: Callable[[], datetime] = _now) -> None:
        self._at, self._clock = premises(Path(root), origin), clock
        self.root, self.where = self._at.root, self._at.where

    # What is there.

    def resolve(self, ref: str) -> Version:
        """The version that `name`, `name@latest`, `name@7`, `name@prod` or `name@sha256:...` means now."""
        wanted = reference.parse(ref)
        return self._at.existing(wanted.name).select(wanted.selector)

    def read(self, version: Version, file: str) -> bytes:
        """The published bytes, checked again: CorruptBlob if one bit differs."""
        if file not in version.manifest.files:
            raise UnknownFile(file, version.manifest.files, version.ref)
        return self._at.blobs.read(version.manifest.files[file], f"{file} of {version.ref}")

    def manifest_bytes(self, version: Version) -> bytes:
        """What the version's digest is the digest of."""
        return self._at.existing(version.name).manifest(version.number)

    def signatures(self, name: str) -> Signatures:
        """The envelopes that vouch for versions of `name`: beside its records, and in no digest."""
        return Signatures(self._at.fresh(name).directory / "signatures", self._at.create)

    def parent(self, manifest: Manifest) -> Version:
        """The version whose digest a controller is bound to, whatever number it has in this store."""
        if manifest.task is None:
            raise UnknownParent(manifest.name, (), "a manifest without a task")
        bound = manifest.task.parent
        try:
            return self.resolve(f"{bound.name}@{bound.digest}")
        except (UnknownSkill, UnknownVersion) as error:
            raise UnknownParent(f"{bound.name}@{bound.digest}", error.exists, self.where) from error

    def names(self) -> tuple[str, ...]:
        """Skills with at least one version."""
        return tuple(shelf.name for shelf in self._at.shelves() if shelf.numbers())

    def survey(self, name: str) -> Survey:
        """Every version, ascending, and what is wrong with those that cannot be served. Files are not read."""
        return self._at.existing(name).survey()

    def versions(self, name: str) -> tuple[Version, ...]:
        """Versions that can be served, ascending; a damaged one is reported to the log and passed over."""
        survey = self.survey(name)
        for found in survey.faults:
            logger.warning("%s", found.message)
        return survey.versions

    def summaries(self, name: str) -> tuple[tuple[Summary, ...], tuple[Fault, ...]]:
        """What a listing needs of them, quick however many there are: manifests are read only where they are new."""
        return index.summaries(self._at.existing(name))

    def aliases(self, name: str) -> dict[str, int]:
        """Aliases that were set by hand; `latest` is derived and not among them."""
        return {move.alias: move.number for move in self._at.existing(name).aliases.readable()}

    def protected(self, name: str) -> frozenset[str]:
        """Those of `aliases` that move to nothing worse."""
        return frozenset(move.alias for move in self._at.existing(name).aliases.readable() if guarded(move))

    def latest(self, name: str) -> int:
        """The highest number that is not deleted: derived, so it can never lag behind a publish."""
        return self._at.existing(name).latest()

    def log(self, name: str) -> tuple[AliasMove | Tombstone, ...]:
        """Every move of every alias and every deletion, oldest first; by revision where the clock was set back."""
        shelf = self._at.existing(name)
        return history.ordered(shelf.aliases.history(), shelf.tombstones())

    def verify(self, ref: str | None = None) -> tuple[Fault, ...]:
        """Read and hash everything, or all of one version. Empty means that every byte is as published.

        With an origin it is what that has which is read, all of it anew; and that this cache has nothing else.
        """
        return verification.faults(self._at, ref)

    # What adds to it.

    def publish(self, manifest: Manifest, files: Mapping[str, bytes]) -> Version:
        """All or nothing: gate, blobs, manifest, and only then the record. Returns what `resolve` will return."""
        admission.admit(manifest, files, self._bound(manifest))
        data, published = _written(manifest, files)
        with self._entering(published, data, files) as shelf:
            return _noted(shelf, _taken(shelf, describe(data), None), published)

    def adopt(
        self, data: bytes, files: Mapping[str, bytes], original: Version | None = None, kept: Kept = _unwatched
    ) -> Version:
        """What was published elsewhere: the manifest's very bytes, so its digest stays, through the same gate.

        It takes the number and date of `original`, or NumberTaken; without one, the next number.
        """
        manifest = admission.published(data)
        if {file: describe(content) for file, content in files.items()} != manifest.files:
            raise GateRefused(manifest.name, ["its files are not those that its manifest was published with"])
        admission.admit(manifest, files, self._bound(manifest))
        with self._entering(manifest, data, files, kept) as shelf:
            try:
                return _noted(shelf, _taken(shelf, describe(data), original), manifest)
            except FileExistsError:  # another copy was faster: well and good if it was of the same bytes
                assert original is not None
                self.twin(original)
                return shelf.version(original.number)

    def twin(self, original: Version, elsewhere: str = "the other store") -> Version | None:
        """The version that has the number of `original` here, None where it is free, NumberTaken if not the same."""
        shelf = self._at.fresh(original.name)
        if original.number not in shelf.taken():
            return None
        here = shelf.version(original.number)
        if here.digest != original.digest:
            raise NumberTaken(here.ref, here.digest, self.where, original.digest, elsewhere)
        return here

    def vouch(self, version: Version, envelope: bytes) -> None:
        """Keep an envelope beside the records of `version`; again is nothing. Whose it is, nobody asks here."""
        with self._at.locks.adding(f"{version.ref} is not signed"):
            self.signatures(version.name).add(version.digest, envelope)

    def alias(self, name: str, alias: str, number: int, why: str = "", *, force: bool = False) -> Version:
        """Point `alias` at a version that can be served. The move is logged, and undone by another.

        A protected alias, as `prod` is, moves to no version whose card is worse than the one it points at, unless
        forced: Regression. One whose last move cannot be read may be protected: only a forced move repairs it.
        """
        reference.check_alias(alias)
        shelf = self._at.existing(name)
        with self._at.locks.adding(f"{name}@{alias} is not moved"):
            return shelf.aliases.move(alias, guard.onward(alias, number, shelf.version, force=force), why, repair=force)

    def rollback(self, name: str, alias: str, why: str = "") -> Version:
        """Back to what `alias` meant before and is still there; again, and it goes further back. No guard is asked.

        A logged move like any other, which says what it undoes. Refused where there is nothing to return to.
        """
        shelf = self._aliased(name, alias)
        with self._at.locks.adding(f"{name}@{alias} is not moved"):
            return shelf.aliases.move(alias, back(shelf.aliases, alias, shelf.version), why)

    def protect(self, name: str, alias: str, why: str = "", *, on: bool = True) -> Version:
        """From now on `alias` moves to nothing worse unless forced, or, with `on` false, wherever it is told to."""
        shelf = self._aliased(name, alias)
        with self._at.locks.adding(f"{name}@{alias} is left as it was"):
            return shelf.aliases.move(alias, guard.protecting(shelf.version, on=on), why)

    def lease(self, ref: str, seconds: float, why: str = "") -> Lease:
        """Keep a version from being deleted for so long, or until the lease is released."""
        checked_span("a lease", seconds, least=1)
        self._at.check_shrinks(f"{ref} is not leased")
        self.resolve(ref)  # what is not there is refused before anything is written
        with self._at.locks.adding(f"{ref} is not leased"):
            return self._at.leases.grant(self.resolve(ref), seconds, why, self._clock())

    def release(self, lease: str) -> None:
        """End a lease early, by its id or a beginning of it that no other has."""
        found = self._at.leases.find(lease)
        with self._at.locks.adding(f"lease {found} is not released"):
            self._at.leases.release(found)

    def leases(self) -> tuple[Lease, ...]:
        """Those that have not run out, by the time they end."""
        now = self._clock()
        return tuple(sorted((x for x in self._at.leases.all() if x.until > now), key=lambda lease: lease.until))

    # What takes away.

    def delete(self, ref: str, why: str) -> Tombstone:
        """Take a version away for good, unless someone relies on it: InUse says who. Its number is never used again.

        `ref` names it by number or digest: what an alias or `latest` means may change while one types.
        """
        wanted = reference.parse(ref)
        if not wanted.is_pinned:
            raise InvalidReference(ref, "a deletion names its version by number or digest")
        if not why.strip():
            raise StoreError(f"{ref} is not deleted: say why, for the log")
        self._at.check_shrinks(f"{ref} is not deleted")
        shelf = self._at.existing(wanted.name)
        shelf.number(wanted.selector)
        with self._at.locks.removing(f"{ref} is not deleted"):
            number, now = shelf.number(wanted.selector), self._clock()
            if held := tuple(holders(shelf, number, self._at.shelves(), self._at.leases.all(), now)):
                raise InUse(f"{shelf.name}@{number}", held)
            return tombstones.commit(shelf.records, self._at.create, shelf.name, number, shelf.digest(number), why, now)

    def gc(self, grace: float = GRACE, *, dry_run: bool = False) -> Garbage:
        """Free what nothing has needed for `grace` seconds, and say what.

        Unsweepable while a version cannot be read, or the structure shows that something is lost.
        """
        since = self._clock() - timedelta(seconds=checked_span("a grace", grace))
        self._at.check_shrinks("nothing is swept")
        blobs, leases = self._at.blobs, self._at.leases
        if not place.is_store(self.root):
            place.check(self.root)
            return Garbage()
        if dry_run:
            return garbage.find(self._at.sweepable(), blobs, leases, since)
        with self._at.locks.removing("gc stopped"):
            shelves = self._at.sweepable()
            found = garbage.find(shelves, blobs, leases, since)
            garbage.sweep(found, shelves)
            for shelf in filter(Shelf.exists, shelves):
                index.rewrite(shelf)
        return found

    @contextmanager
    def _entering(
        self, manifest: Manifest, data: bytes, files: Mapping[str, bytes], kept: Kept = _unwatched
    ) -> Iterator[Shelf]:
        """All but the record: what is written here is nobody's garbage until that is there."""
        with self._at.locks.adding(f"{manifest.name} is not published"):
            self._bound(manifest)  # again: until now it could be deleted
            for file, content in files.items():
                self._at.keep(content)
                kept(file, len(content))
            self._at.keep(data)
            self._at.blobs.sync()
            yield self._at.fresh(manifest.name)

    def _aliased(self, name: str, alias: str) -> Shelf:
        shelf = self._at.existing(name)
        if alias not in shelf.aliases.names():
            raise UnknownAlias(alias, shelf.aliases.names(), name)
        return shelf

    def _bound(self, manifest: Manifest) -> Manifest | None:
        return self.parent(manifest).manifest if manifest.task else None


def pinned(manifest: Manifest, files: Mapping[str, bytes]) -> str:
    """`name@sha256:...` of the version that they will be once published. GateRefused if they can't be written as JSON."""
    return f"{manifest.name}@{describe(_written(manifest, files)[0]).digest}"


def _written(manifest: Manifest, files: Mapping[str, bytes]) -> tuple[bytes, Manifest]:
    """What is published of a manifest: its bytes, and what a reader makes of them."""
    described = {file: describe(data) for file, data in files.items()}
    return admission.canonical(manifest.model_copy(update={"files": described}))


def _taken(shelf: Shelf, manifest: Blob, original: Version | None) -> Record:
    """The number of `original`, or FileExistsError; without one, the next."""
    if original is None:
        meant = (move.number for move in shelf.aliases.readable())
        return records.commit(shelf.records, shelf.create, shelf.name, manifest, meant)
    return records.place(shelf.records, shelf.create, shelf.name, original.number, manifest, original.created)


def _noted(shelf: Shelf, record: Record, manifest: Manifest) -> Version:
    version = Version(shelf.name, record.number, record.manifest.digest, record.created, manifest)
    index.note(shelf, version)
    return version
