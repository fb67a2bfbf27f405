"""The skill store: versions that never change, on a local file system. Knows no networks; serves nothing unverified.

    <root>/layout.json                     version of this layout
    <root>/blobs/sha256/<hex>              files and manifests, named by their digest
    <root>/skills/<name>/v/00000007.json   the record that makes version 7 exist
    <root>/skills/<name>/alias/prod.json   aliases; log.jsonl beside it has every move
    <root>/staging/                        temporary files of publishers; what a crash leaves here is garbage

A publish writes and syncs its blobs first and its record last, so a version is there whole or not at all, without any
repair on opening. Reading takes no lock and writes nothing: a store may be mounted read-only.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from skills_store import contract, guard, records, reference
from skills_store.aliases import AliasMove
from skills_store.blobs import Blobs, describe
from skills_store.durable import make_dirs, sync_dir, temporary
from skills_store.errors import (
    CorruptStore,
    GateRefused,
    Regression,
    StoreError,
    UnknownFile,
    UnknownParent,
    UnknownSkill,
    UnknownVersion,
    UnsupportedLayout,
)
from skills_store.manifest import Graph, Manifest
from skills_store.shelf import Shelf
from skills_store.version import Fault, Survey, Version, fault

__all__ = ["Fault", "Store", "Survey", "Version", "default_root"]

LAYOUT = b'{"layout":1}'
logger = logging.getLogger("skills_store")


BUNDLED = Path(__file__).parent / "bundled"  # the library that comes with the project: read it, never publish there


def default_root() -> Path:
    """$REPERTOIRE_STORE, or the checkout's own git-ignored data folder."""
    return Path(os.environ.get("REPERTOIRE_STORE") or Path(__file__).parent / "data")


class Store:
    """Stateless: every call reads the disk, so any number of processes may share one root."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self._skills = self.root / "skills"
        self._staging = self.root / "staging"
        self._blobs = Blobs(self.root / "blobs" / "sha256", self._staging)
        marker = self.root / "layout.json"
        if marker.exists() and (found := marker.read_bytes()) != LAYOUT:
            raise UnsupportedLayout(str(self.root), f"its layout is {found[:80]!r}, this program knows {LAYOUT!r}")

    def publish(self, manifest: Manifest, files: Mapping[str, bytes]) -> Version:
        """All or nothing: gate, blobs, manifest, and only then the record. Returns what `resolve` will return."""
        self._admit(manifest, files)
        described = {file: describe(data) for file, data in files.items()}
        data, published = _canonical(manifest.model_copy(update={"files": described}))
        self._mark()
        for content in (*files.values(), data):
            self._blobs.write(content)
        self._blobs.sync()
        shelf = self._shelf(manifest.name)
        record = records.commit(shelf.records, self._staging, manifest.name, describe(data))
        return Version(record.name, record.number, record.manifest.digest, record.created, published)

    def resolve(self, ref: str) -> Version:
        """The version that `name`, `name@latest`, `name@7`, `name@prod` or `name@sha256:...` means now."""
        wanted = reference.parse(ref)
        return self._existing(wanted.name).select(wanted.selector)

    def read(self, version: Version, file: str) -> bytes:
        """The published bytes, checked again: CorruptBlob if one bit differs."""
        if file not in version.manifest.files:
            raise UnknownFile(file, version.manifest.files, version.ref)
        return self._blobs.read(version.manifest.files[file], f"{file} of {version.ref}")

    def parent(self, manifest: Manifest) -> Version:
        """The version whose digest a controller is bound to, whatever number it has in this store."""
        if manifest.task is None:
            raise UnknownParent(manifest.name, (), "a manifest without a task")
        bound = manifest.task.parent
        try:
            return self.resolve(f"{bound.name}@{bound.digest}")
        except (UnknownSkill, UnknownVersion) as error:
            raise UnknownParent(f"{bound.name}@{bound.digest}", error.exists, str(self.root)) from error

    def names(self) -> tuple[str, ...]:
        """Skills with at least one version."""
        try:
            entries = sorted(os.listdir(self._skills))
        except FileNotFoundError:
            return ()
        return tuple(e for e in entries if reference.is_name(e) and self._shelf(e).numbers())

    def survey(self, name: str) -> Survey:
        """Every version, ascending, and what is wrong with those that cannot be served. Files are not read."""
        return self._existing(name).survey()

    def versions(self, name: str) -> tuple[Version, ...]:
        """Versions that can be served, ascending; a damaged one is reported to the log and passed over."""
        survey = self.survey(name)
        for found in survey.faults:
            logger.warning("%s", found.message)
        return survey.versions

    def aliases(self, name: str) -> dict[str, int]:
        """Aliases that were set by hand; `latest` is derived and not among them."""
        return {move.alias: move.number for move in self._existing(name).aliases.readable()}

    def alias(self, name: str, alias: str, number: int, why: str = "", *, force: bool = False) -> Version:
        """Point `alias` at a version that can be served. The move is logged, and undone by another.

        `prod` moves to no version whose card is worse than the one it points at, unless forced: Regression.
        """
        reference.check_alias(alias)
        shelf = self._existing(name)
        version = shelf.version(number)
        if alias == guard.GUARDED and not force:
            self._check_no_worse(version, shelf)
        shelf.aliases.move(alias, number, version.digest, why)
        return version

    def latest(self, name: str) -> int:
        """The highest number: derived, so it can never lag behind a publish."""
        return self._existing(name).numbers()[-1]

    def log(self, name: str) -> tuple[AliasMove, ...]:
        """Every move of every alias, oldest first."""
        return self._existing(name).aliases.history()

    def verify(self, ref: str | None = None) -> tuple[Fault, ...]:
        """Read and hash everything, or all of one version. Empty means that every byte is as published."""
        if ref is None:
            return tuple(found for name in self.names() for found in self._shelf(name).verify())
        try:
            version = self.resolve(ref)
        except CorruptStore as error:
            return (fault(ref, error),)
        return tuple(self._shelf(version.name).verify_files(version))

    def _check_no_worse(self, version: Version, shelf: Shelf) -> None:
        now = self.aliases(version.name).get(guard.GUARDED)
        if now is None:
            return
        current = shelf.version(now)
        if worse := guard.worse(version.manifest.kind, version.manifest.card, current.manifest.card):
            raise Regression(f"{version.name}@{guard.GUARDED}", version.ref, current.ref, worse)

    def _shelf(self, name: str) -> Shelf:
        return Shelf(name, self._skills / reference.check_name(name), self._blobs)

    def _existing(self, name: str) -> Shelf:
        shelf = self._shelf(name)
        if not shelf.numbers():
            raise UnknownSkill(name, self.names(), str(self.root))
        return shelf

    def _admit(self, manifest: Manifest, files: Mapping[str, bytes]) -> None:
        reference.check_name(manifest.name)
        for file in files:
            reference.check_file(file)
        graphs = {graph.file: graph for graph in manifest.graphs.values()}
        reasons = [f"graph file {file} is missing" for file in graphs if file not in files]
        reasons += [f"{file} belongs to no graph" for file in files if file.endswith(".onnx") and file not in graphs]
        parent = self.parent(manifest).manifest if manifest.task else None
        reasons += contract.breaches(manifest, parent)
        if reasons:
            raise GateRefused(manifest.name, reasons)
        admit = _gate()
        for file, graph in graphs.items():
            admit(f"{file} of {manifest.name}", files[file], graph)

    def _mark(self) -> None:
        make_dirs(self._staging)
        if not (marker := self.root / "layout.json").exists():
            with temporary(self._staging, LAYOUT) as temp:
                os.replace(temp, marker)
            sync_dir(self.root)


def _gate() -> Callable[[str, bytes, Graph], None]:
    # onnx is heavy, and absent from a serving image: only a publish needs it.
    try:
        from skills_store.gate import admit
    except ImportError as error:
        raise StoreError(f"publishing needs the onnx package (repertoire[store]): {error}") from error
    return admit


def _canonical(manifest: Manifest) -> tuple[bytes, Manifest]:
    """One manifest, one digest: sorted keys, no spaces, no NaN. And what a reader will make of it."""
    try:
        plain = manifest.model_dump(mode="json")
        data = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
        return data, Manifest.model_validate_json(data)
    except (ValidationError, PydanticSerializationError, ValueError) as error:
        raise GateRefused(manifest.name, [f"its manifest is not plain JSON: {' '.join(str(error).split())}"]) from error
