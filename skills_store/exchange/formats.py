"""The forms in which a version leaves a store as a folder, and those in which it comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from skills_store.disk.blobs import describe
from skills_store.errors import NotAnExport, UnknownSkill, UnknownVersion
from skills_store.exchange import folder, oci, triton
from skills_store.exchange.parcel import Parcel, Tree, check_empty, manifest_of, packed, write
from skills_store.exchange.progress import Progress, Tally
from skills_store.store import Store
from skills_store.version import Version

EXPORTS: dict[str, Callable[[Version, Parcel], Tree]] = {"onnx": folder.tree, "oci": oci.tree, "triton": triton.tree}
IMPORTS: dict[str, Callable[[Path], Parcel]] = {
    oci.MARK: oci.read,
    folder.MARK: folder.read,
}  # by the file that marks it


def export(store: Store, ref: str, form: str, directory: Path, progress: Progress = lambda *_: None) -> Version:
    """`directory` is whole afterwards, or as it was."""
    version = store.resolve(ref)
    check_empty(directory)
    reading = Tally(progress, sum(blob.size for blob in version.manifest.files.values()))
    tree = EXPORTS[form](version, packed(store, version, lambda file, size: reading.add(f"read {file}", size)))
    writing = Tally(progress, sum(map(len, tree.values())))
    write(directory, tree, lambda file, size: writing.add(f"wrote {file}", size))
    return version


def take_in(store: Store, directory: Path) -> tuple[Version, bool]:
    """Publish what `export` wrote, through the gate, under the next number and the same digest. False: it was here."""
    marks = [mark for mark in IMPORTS if (directory / mark).is_file()]
    if not marks:
        raise NotAnExport(str(directory), f"it has none of {', '.join(IMPORTS)}; `export --onnx` or `--oci` writes one")
    parcel = IMPORTS[marks[0]](directory)
    here = _here(store, parcel.manifest, str(directory))
    version = here or store.adopt(parcel.manifest, parcel.files)
    kept = store.signatures(version.name).of(version.digest)
    for envelope in parcel.signatures:
        if envelope not in kept:
            store.vouch(version, envelope)
    return version, here is None


def _here(store: Store, manifest: bytes, where: str) -> Version | None:
    try:
        return store.resolve(f"{manifest_of(manifest, where).name}@{describe(manifest).digest}")
    except (UnknownSkill, UnknownVersion):
        return None
