"""The formats in which a version is exported as a folder, and those that are imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from skills_store.disk.blobs import describe
from skills_store.errors import NotAnExport
from skills_store.store import Store
from skills_store.transfer import folder, oci, triton
from skills_store.transfer.bundle import (
    Bundle,
    Tree,
    check_empty,
    parse_manifest,
    read_bundle,
    write,
)
from skills_store.transfer.progress import Progress, Tally
from skills_store.version import Version

EXPORTS: dict[str, Callable[[Version, Bundle], Tree]] = {
    "onnx": folder.make_tree,
    "oci": oci.make_tree,
    "triton": triton.make_tree,
}
# By the marker file of the format.
IMPORTS: dict[str, Callable[[Path], Bundle]] = {
    oci.MARK: oci.read,
    folder.MARK: folder.read,
}


def export(
    store: Store, ref: str, form: str, directory: Path, progress: Progress = lambda *_: None
) -> Version:
    """`directory` is complete afterwards, or as it was."""
    version = store.resolve(ref)
    check_empty(directory)
    reading = Tally(progress, sum(blob.size for blob in version.manifest.files.values()))
    tree = EXPORTS[form](
        version, read_bundle(store, version, lambda file, size: reading.add(f"read {file}", size))
    )
    writing = Tally(progress, sum(map(len, tree.values())))
    write(directory, tree, lambda file, size: writing.add(f"wrote {file}", size))
    return version


def import_folder(store: Store, directory: Path) -> tuple[Version, bool]:
    """Publish what `export` wrote, through the gate, under the next number and the same digest.
    False: it existed already.
    """
    marks = [mark for mark in IMPORTS if (directory / mark).is_file()]
    if not marks:
        raise NotAnExport(
            str(directory),
            f"it has none of {', '.join(IMPORTS)}; `export --onnx` or `--oci` writes one",
        )
    bundle = IMPORTS[marks[0]](directory)
    existing = _find_imported(store, bundle.manifest, str(directory))
    version = existing or store.adopt(bundle.manifest, bundle.files)
    stored = store.signatures(version.name).read_envelopes(version.digest)
    for envelope in bundle.signatures:
        if envelope not in stored:
            store.add_signature(version, envelope)
    return version, existing is None


def _find_imported(store: Store, manifest: bytes, label: str) -> Version | None:
    return store.find_own(parse_manifest(manifest, label).name, describe(manifest).digest)
