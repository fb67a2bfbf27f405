"""`--onnx`: the files by their names, manifest.json, README.md and signatures, for people to read.
`oras pull` of an image of `--oci` writes the same without README and signatures.
"""

from __future__ import annotations

import json
from pathlib import Path

from skills_store.catalog import page
from skills_store.catalog.text import shorten_digest
from skills_store.disk.blobs import read_verified
from skills_store.disk.signatures import LARGEST
from skills_store.errors import InvalidName, NotAnExport
from skills_store.reference import check_file
from skills_store.transfer.bundle import Bundle, Tree, parse_manifest
from skills_store.version import Version

MARK = "manifest.json"
LARGEST_MANIFEST = 64 * 2**20  # skeleton, MJCF and clip embeddings; read before its digest is known


def make_tree(version: Version, bundle: Bundle) -> Tree:
    check_manifest_name(version, bundle)
    signed = {f"signatures/{i}.json": envelope for i, envelope in enumerate(bundle.signatures)}
    # A README of the version's own replaces ours: the digest covers it, and not ours.
    return {"README.md": readme(version), **bundle.files, **signed, MARK: bundle.manifest}


def check_manifest_name(version: Version, bundle: Bundle) -> None:
    """Raises InvalidName if a file has the manifest's name in an export, regardless of case."""
    for file in bundle.files:
        if file.lower() == MARK:
            raise InvalidName(
                "file", file, f"an export of {version.ref} has the manifest under that name"
            )


def read(directory: Path) -> Bundle:
    data = read_bounded(directory / MARK, LARGEST_MANIFEST)
    files = {
        file: read_verified(directory / check_file(file), blob, str(directory / file))
        for file, blob in parse_manifest(data, str(directory / MARK)).files.items()
    }
    signed = sorted((directory / "signatures").glob("*.json"))
    return Bundle(data, files, tuple(read_bounded(path, LARGEST) for path in signed))


def read_bounded(path: Path, largest: int) -> bytes:
    """A file of unknown digest, so at least its size is checked."""
    if (size := path.stat().st_size) > largest:
        raise NotAnExport(str(path), f"it has {size} bytes, over the cap of {largest}")
    return path.read_bytes()


def readme(version: Version) -> bytes:
    """What a person needs to know before using the files. Front matter as model hubs read it."""
    manifest = version.manifest
    lines = [
        "---",
        "license: other",
        f"license_name: {json.dumps(manifest.licence)}",  # a JSON string is a YAML one
        "library_name: onnx",
        f"tags: [{manifest.kind}, motor-skills, {manifest.character.name}]",
        "---",
        "",
        f"# {version.ref}",
        "",
        f"`{version.pinned}`: the digest is that of `manifest.json`, and `manifest.json` has that",
        "of every file. Normalizers and action scale are inside the graphs; names, frames and",
        "units of every number that goes in or out are in the manifest. Exported by Repertoire;",
        "`python -m skills_store import DIR` takes it back.",
        "",
        "```",
        page.format_page(page.describe_version(version)),
        "```",
        *_clips(version),
    ]
    return "\n".join([*lines, ""]).encode()


def _clips(version: Version) -> list[str]:
    clips = version.manifest.lineage.clips
    if not clips:
        return []
    rows = [
        f"| {clip.name} | {clip.source} | {clip.licence} | {shorten_digest(clip.digest)} |"
        for clip in clips
    ]
    return [
        "",
        "## Trained on",
        "",
        "| clip | source | licence | digest |",
        "|---|---|---|---|",
        *rows,
    ]
