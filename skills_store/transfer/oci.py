"""`--oci`: an OCI image layout, as `oras` and `skopeo` copy it to a registry and back.

    oci-layout  index.json  blobs/sha256/<hex>

The config blob is the version's manifest, so the version's digest is the config's. Each file is a
layer, titled with its name. The manifest is also a layer, titled manifest.json, because `oras pull`
writes titled layers only: its result is an export like that of `--onnx`. A signature is an artifact
whose `subject` is the image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from skills_store.disk.blobs import describe, read_verified
from skills_store.disk.signatures import LARGEST
from skills_store.errors import NotAnExport
from skills_store.manifest import Blob, Digest
from skills_store.transfer.bundle import Bundle, Tree, encode_json, parse_manifest
from skills_store.transfer.folder import LARGEST_MANIFEST, check_manifest_name, read_bounded
from skills_store.transfer.folder import MARK as MANIFEST
from skills_store.version import Version

MARK = "oci-layout"
LAYOUT = {"imageLayoutVersion": "1.0.0"}
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
IMAGE_TYPE = "application/vnd.oci.image.manifest.v1+json"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
SKILL_TYPE = "application/vnd.repertoire.skill.v1+json"
ENVELOPE_TYPE = "application/vnd.dsse.envelope.v1+json"
LARGEST_JSON = 4 * 2**20  # the limit of registries


class Descriptor(BaseModel):
    """What the layout says of a blob. The digest's pattern keeps it from being another path."""

    mediaType: str
    digest: Digest
    size: int

    @property
    def blob(self) -> Blob:
        return Blob(digest=self.digest, size=self.size)


class Image(BaseModel):
    config: Descriptor
    layers: tuple[Descriptor, ...]
    subject: Descriptor | None = None


class Index(BaseModel):
    manifests: tuple[Descriptor, ...]


Document = TypeVar("Document", Image, Index)


def make_tree(version: Version, bundle: Bundle) -> Tree:
    check_manifest_name(version, bundle)
    layout: Tree = {}
    layers = [
        _add_layer(layout, file, data, "application/octet-stream")
        for file, data in bundle.files.items()
    ]
    layers.append(_add_layer(layout, MANIFEST, bundle.manifest, SKILL_TYPE))
    config = _add_blob(layout, bundle.manifest, SKILL_TYPE)
    image = _add_image(layout, SKILL_TYPE, config, layers, annotations=_make_annotations(version))
    signatures = [
        _add_image(
            layout,
            ENVELOPE_TYPE,
            _add_blob(layout, b"{}", EMPTY_TYPE),
            [_add_blob(layout, data, ENVELOPE_TYPE)],
            subject=image,
        )
        for data in bundle.signatures
    ]
    tagged = image | {"annotations": {"org.opencontainers.image.ref.name": str(version.number)}}
    index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [tagged, *signatures]}
    return {**layout, "index.json": encode_json(index), MARK: encode_json(LAYOUT)}


def read(directory: Path) -> Bundle:
    """The only skill of a layout. Files are read by the digests in the version's manifest, whatever
    the layers' descriptors are.
    """
    index = _parse(
        Index, read_bounded(directory / "index.json", LARGEST_JSON), str(directory / "index.json")
    )
    images = [
        (each, _read_image(directory, each))
        for each in index.manifests
        if each.mediaType == IMAGE_TYPE
    ]
    skills = [(each, image) for each, image in images if image.config.mediaType == SKILL_TYPE]
    if len(skills) != 1:
        raise NotAnExport(
            str(directory), f"it has {len(skills)} images of type {SKILL_TYPE}, not one"
        )
    ((descriptor, skill),) = skills
    manifest = _read_blob(directory, skill.config.blob, LARGEST_MANIFEST)
    files = {
        file: read_verified(_blob_path(directory, blob), blob, f"{file} of {directory}")
        for file, blob in parse_manifest(manifest, str(directory)).files.items()
    }
    signed = [
        image.layers[0] for _, image in images if image.layers and image.subject == descriptor
    ]
    return Bundle(
        manifest, files, tuple(_read_blob(directory, each.blob, LARGEST) for each in signed)
    )


def _add_image(
    layout: Tree, kind: str, config: Any, layers: list[Any], **more: Any
) -> dict[str, Any]:
    image = {
        "schemaVersion": 2,
        "mediaType": IMAGE_TYPE,
        "artifactType": kind,
        "config": config,
        "layers": layers,
    }
    return _add_blob(layout, encode_json(image | more), IMAGE_TYPE) | {"artifactType": kind}


def _add_blob(layout: Tree, data: bytes, media_type: str) -> dict[str, Any]:
    """Add a blob; returns its descriptor."""
    blob = describe(data)
    layout[f"blobs/sha256/{blob.digest.removeprefix('sha256:')}"] = data
    return {"mediaType": media_type, "digest": blob.digest, "size": blob.size}


def _add_layer(layout: Tree, file: str, data: bytes, media_type: str) -> dict[str, Any]:
    """Add a layer that is pulled as `file`; returns its descriptor."""
    return _add_blob(layout, data, media_type) | {
        "annotations": {"org.opencontainers.image.title": file}
    }


def _make_annotations(version: Version) -> dict[str, str]:
    labels = {
        "created": version.created.isoformat(),
        "title": version.name,
        "version": str(version.number),
        "licenses": version.manifest.licence,
    }
    return {f"org.opencontainers.image.{key}": value for key, value in labels.items()}


def _read_image(directory: Path, descriptor: Descriptor) -> Image:
    return _parse(
        Image,
        _read_blob(directory, descriptor.blob, LARGEST_JSON),
        f"{descriptor.digest} of {directory}",
    )


def _read_blob(directory: Path, blob: Blob, largest: int) -> bytes:
    if blob.size > largest:
        raise NotAnExport(
            str(directory), f"blob {blob.digest} has {blob.size} bytes, over the cap of {largest}"
        )
    return read_verified(_blob_path(directory, blob), blob, str(directory))


def _blob_path(directory: Path, blob: Blob) -> Path:
    return directory / "blobs" / "sha256" / blob.digest.removeprefix("sha256:")


def _parse(kind: type[Document], data: bytes, label: str) -> Document:
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise NotAnExport(
            label, f"it is no OCI {kind.__name__.lower()} ({error.error_count()} faults)"
        ) from error
