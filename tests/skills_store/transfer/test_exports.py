"""Exports as folders of ONNX, OCI and Triton, and imports that give the same version."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from skills_store.__main__ import main
from skills_store.disk.blobs import describe
from skills_store.errors import (
    CorruptBlob,
    FailedWrite,
    GateRefusal,
    InvalidName,
    NotAnExport,
    OccupiedFolder,
    UnknownParent,
)
from skills_store.manifest import Clip
from skills_store.store import Store
from skills_store.transfer.formats import EXPORTS, export, import_folder
from tests import tiny
from tests.skills_store.full import files_of_at_most


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    clip = Clip(
        name="walk", digest="sha256:" + "0" * 64, source="walk.bvh", licence="CC-BY-4.0", weight=1.0
    )
    manifest = tiny.skills_manifest()
    lineage = manifest.lineage.model_copy(update={"clips": (clip,)})
    tiny.publish_tiny(store, seed=3)
    store.publish(manifest.model_copy(update={"lineage": lineage}), tiny.skills_files())
    return store


@pytest.mark.parametrize("form", ["onnx", "oci"])
def test_export_and_import_give_the_same_version(store: Store, tmp_path: Path, form: str) -> None:
    exported = export(store, "humanoid", form, tmp_path / "out")
    other = Store(tmp_path / "other")
    version, new = import_folder(other, tmp_path / "out")
    assert new
    # The store gives the number; the digest is unchanged.
    assert (version.ref, version.digest) == (
        "humanoid@1",
        exported.digest,
    )
    assert version.manifest == exported.manifest
    assert {
        file: other.read(version, file) for file in version.manifest.files
    } == tiny.skills_files()
    assert other.verify() == ()
    assert import_folder(other, tmp_path / "out") == (version, False)
    assert len(other.versions("humanoid")) == 1


@pytest.mark.parametrize("form", list(EXPORTS))
def test_export_needs_an_empty_folder(store: Store, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    with pytest.raises(OccupiedFolder, match="not an empty folder"):
        export(store, "humanoid", form, out)
    assert [path.name for path in out.iterdir()] == ["precious.txt"]
    (out / "precious.txt").unlink()
    export(store, "humanoid", form, out)
    with pytest.raises(OccupiedFolder):
        export(store, "humanoid", form, out / next(out.iterdir()).name)


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("form", list(EXPORTS))
def test_a_full_disk_leaves_the_folder_as_it_was(
    store: Store, tmp_path: Path, form: str, new: bool
) -> None:
    (tmp_path / "at").mkdir()
    out = tmp_path / "at/out" if new else tmp_path / "at"
    with (
        files_of_at_most(1000),
        pytest.raises(FailedWrite, match=f"{out} is not written: File too large"),
    ):
        export(store, "humanoid", form, out)
    assert list((tmp_path / "at").iterdir()) == []
    export(store, "humanoid", form, out)
    assert [path.name for path in (tmp_path / "at").iterdir()] == ["out"] or not new


def test_an_interrupted_export_leaves_the_folder_as_it_was(store: Store, tmp_path: Path) -> None:
    def stop(what: str, *_: int) -> None:
        if what == "wrote manifest.json":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(store, "humanoid", "onnx", tmp_path / "out", stop)
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_export_reports_progress(store: Store, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    export(store, "humanoid", "onnx", tmp_path / "out", lambda *step: seen.append(step))
    for verb in ("read", "wrote"):
        done = [step[1:] for step in seen if step[0].startswith(verb)]
        assert sorted(done) == done
        assert done[-1][0] == done[-1][1] > 0
    assert {what for what, *_ in seen} >= {
        "read policy.onnx",
        "wrote policy.onnx",
        "wrote README.md",
    }


@pytest.mark.parametrize("form", list(EXPORTS))
def test_export_of_a_damaged_version_is_refused(store: Store, tmp_path: Path, form: str) -> None:
    digest = store.resolve("humanoid").manifest.files["encoder.onnx"].digest
    path = store.root / "blobs/sha256" / digest.removeprefix("sha256:")
    path.chmod(0o644)
    path.write_bytes(b"rot")
    with pytest.raises(CorruptBlob):
        export(store, "humanoid", form, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_exported_folder_has_manifest_files_and_readme(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    version = export(store, "humanoid", "onnx", out)
    assert (
        "sha256:" + hashlib.sha256((out / "manifest.json").read_bytes()).hexdigest()
        == version.digest
    )
    assert {
        file: (out / file).read_bytes() for file in version.manifest.files
    } == tiny.skills_files()
    readme = (out / "README.md").read_text()
    for part in (
        version.pinned,
        'license_name: "CC0-1.0"',
        "| walk | walk.bvh | CC-BY-4.0 |",
        "policy: state(B, 69)",
    ):
        assert part in readme


def test_export_keeps_the_versions_readme(store: Store, tmp_path: Path) -> None:
    version = store.publish(tiny.skills_manifest(), tiny.skills_files() | {"README.md": b"# Mine"})
    export(store, version.ref, "onnx", tmp_path / "out")
    assert (tmp_path / "out/README.md").read_bytes() == b"# Mine"
    assert import_folder(Store(tmp_path / "other"), tmp_path / "out")[0].digest == version.digest


def test_a_changed_or_missing_file_is_refused(store: Store, tmp_path: Path) -> None:
    export(store, "humanoid", "onnx", tmp_path / "out")
    (tmp_path / "out/policy.onnx").write_bytes(tiny.policy(9))
    other = Store(tmp_path / "other")
    with pytest.raises(CorruptBlob, match=r"policy\.onnx.*hashes to"):
        import_folder(other, tmp_path / "out")
    (tmp_path / "out/policy.onnx").unlink()
    with pytest.raises(CorruptBlob, match="No such file"):
        import_folder(other, tmp_path / "out")
    assert not other.root.exists()


def test_import_runs_the_gate(store: Store, tmp_path: Path) -> None:
    """An edited folder may have matching digests."""
    export(store, "humanoid", "onnx", tmp_path / "out")
    unknown = tiny.policy().replace(b"Tanh", b"None")
    manifest = json.loads((tmp_path / "out/manifest.json").read_bytes())
    manifest["files"]["policy.onnx"]["digest"] = "sha256:" + hashlib.sha256(unknown).hexdigest()
    (tmp_path / "out/policy.onnx").write_bytes(unknown)
    (tmp_path / "out/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(GateRefusal, match="operator None"):
        import_folder(Store(tmp_path / "other"), tmp_path / "out")


def test_manifest_with_a_file_outside_the_folder_is_refused(store: Store, tmp_path: Path) -> None:
    export(store, "humanoid", "onnx", tmp_path / "out")
    manifest = json.loads((tmp_path / "out/manifest.json").read_bytes())
    manifest["files"]["../secret"] = manifest["files"]["policy.onnx"]
    (tmp_path / "out/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidName):
        import_folder(Store(tmp_path / "other"), tmp_path / "out")


def test_folder_that_is_no_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAnExport, match=r"none of oci-layout, manifest\.json"):
        import_folder(Store(tmp_path / "other"), tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(NotAnExport, match="no manifest"):
        import_folder(Store(tmp_path / "other"), tmp_path)


def test_import_of_a_controller_needs_its_parent(store: Store, tmp_path: Path) -> None:
    tiny.publish_tiny_controller(store, store.resolve("humanoid"))
    other = Store(tmp_path / "other")
    for ref in ("reach", "humanoid"):
        export(store, ref, "onnx", tmp_path / ref)
    with pytest.raises(UnknownParent):
        import_folder(other, tmp_path / "reach")
    import_folder(other, tmp_path / "humanoid")
    assert other.parent(import_folder(other, tmp_path / "reach")[0].manifest).ref == "humanoid@1"


def test_oci_export_is_a_valid_image_layout(store: Store, tmp_path: Path) -> None:
    """By image-spec 1.1: each descriptor names a blob of its size and digest."""
    out = tmp_path / "out"
    version = export(store, "humanoid", "oci", out)
    assert json.loads((out / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((out / "index.json").read_text())
    assert index["schemaVersion"] == 2
    (described,) = index["manifests"]
    assert described["annotations"]["org.opencontainers.image.ref.name"] == "2"
    image = json.loads(_oci_blob(out, described))
    assert (image["schemaVersion"], image["mediaType"]) == (2, described["mediaType"])
    assert (
        image["artifactType"]
        == described["artifactType"]
        == "application/vnd.repertoire.skill.v1+json"
    )
    assert image["config"]["digest"] == version.digest
    assert _oci_blob(out, image["config"]) == store.manifest_bytes(version)
    titled = {
        each["annotations"]["org.opencontainers.image.title"]: _oci_blob(out, each)
        for each in image["layers"]
    }
    assert titled == tiny.skills_files() | {"manifest.json": store.manifest_bytes(version)}
    assert {path.name for path in (out / "blobs/sha256").iterdir()} == {
        each["digest"].removeprefix("sha256:")
        for each in (described, image["config"], *image["layers"])
    }


@pytest.mark.parametrize("form", ["onnx", "oci"])
@pytest.mark.parametrize("file", ["manifest.json", "Manifest.json"])
def test_export_refuses_a_file_named_like_the_manifest(
    store: Store, tmp_path: Path, form: str, file: str
) -> None:
    version = store.publish(tiny.skills_manifest(), tiny.skills_files() | {file: b"{}"})
    with pytest.raises(
        InvalidName, match=rf"'{file}' cannot name a file.*{version.ref} has the manifest"
    ):
        export(store, version.ref, form, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def pulled(layout: Path, folder: Path) -> Path:
    """`folder` with the titled layers of the image in `layout`, as `oras pull` writes them."""
    described = json.loads((layout / "index.json").read_text())["manifests"][0]
    folder.mkdir()
    for layer in json.loads(_oci_blob(layout, described))["layers"]:
        (folder / layer["annotations"]["org.opencontainers.image.title"]).write_bytes(
            _oci_blob(layout, layer)
        )
    return folder


def test_folder_pulled_by_oras_is_imported_as_the_same_version(
    store: Store, tmp_path: Path
) -> None:
    version = export(store, "humanoid", "oci", tmp_path / "out")
    other = Store(tmp_path / "other")
    folder = pulled(tmp_path / "out", tmp_path / "pulled")
    assert {path.name for path in folder.iterdir()} == {"manifest.json", *tiny.skills_files()}
    assert import_folder(other, folder)[0].digest == version.digest
    assert other.verify() == ()


def test_a_pulled_folder_is_verified_like_any_export(store: Store, tmp_path: Path) -> None:
    export(store, "humanoid", "oci", tmp_path / "out")
    other = Store(tmp_path / "other")
    changed = pulled(tmp_path / "out", tmp_path / "changed")
    (changed / "policy.onnx").write_bytes(tiny.policy(9))
    with pytest.raises(CorruptBlob, match=r"policy\.onnx.*hashes to"):
        import_folder(other, changed)
    part = pulled(tmp_path / "out", tmp_path / "part")
    (part / "style.onnx").unlink()
    with pytest.raises(CorruptBlob, match="No such file"):
        import_folder(other, part)
    assert not other.root.exists()


def test_oci_layout_without_a_manifest_layer_is_imported(store: Store, tmp_path: Path) -> None:
    version = export(store, "humanoid", "oci", tmp_path / "out")
    path = tmp_path / "out/index.json"
    index = json.loads(path.read_text())
    image = json.loads(_oci_blob(tmp_path / "out", index["manifests"][0]))
    image["layers"] = [each for each in image["layers"] if each["digest"] != version.digest]
    assert len(image["layers"]) == len(tiny.skills_files())
    data = json.dumps(image).encode()
    blob = describe(data)
    (tmp_path / "out/blobs/sha256" / blob.digest.removeprefix("sha256:")).write_bytes(data)
    index["manifests"][0] |= blob.model_dump()
    path.write_text(json.dumps(index))
    assert import_folder(Store(tmp_path / "other"), tmp_path / "out")[0].digest == version.digest


def test_index_written_by_a_registry_is_imported(store: Store, tmp_path: Path) -> None:
    """A registry keeps no annotations of the index, which may list other images."""
    version = export(store, "humanoid", "oci", tmp_path / "out")
    path = tmp_path / "out/index.json"
    described = json.loads(path.read_text())["manifests"][0]
    bare = {key: described[key] for key in ("mediaType", "digest", "size")}
    foreign = bare | {"mediaType": "application/vnd.oci.image.index.v1+json"}
    path.write_text(json.dumps({"schemaVersion": 2, "manifests": [foreign, bare]}))
    assert import_folder(Store(tmp_path / "other"), tmp_path / "out")[0].digest == version.digest
    path.write_text(json.dumps({"schemaVersion": 2, "manifests": []}))
    with pytest.raises(NotAnExport, match="0 images"):
        import_folder(Store(tmp_path / "other"), tmp_path / "out")


@pytest.mark.parametrize("digest", ["sha256:../../etc", "md5:" + "0" * 32, 7])
def test_index_with_an_invalid_digest_is_refused(
    store: Store, tmp_path: Path, digest: object
) -> None:
    export(store, "humanoid", "oci", tmp_path / "out")
    index = json.loads((tmp_path / "out/index.json").read_text())
    index["manifests"][0]["digest"] = digest
    (tmp_path / "out/index.json").write_text(json.dumps(index))
    with pytest.raises(NotAnExport, match="no OCI index"):
        import_folder(Store(tmp_path / "other"), tmp_path / "out")


def test_a_triton_repository_serves_each_graph(store: Store, tmp_path: Path) -> None:
    """Parsed as protobuf text, then run with the shapes that the configuration declares."""
    out = tmp_path / "out"
    version = export(store, "humanoid@2", "triton", out)
    assert {path.name for path in out.iterdir()} == {
        "humanoid_policy",
        "humanoid_encoder",
        "humanoid_style",
    }
    configs = {path.name: _triton_config(path / "config.pbtxt") for path in out.iterdir()}
    policy = configs["humanoid_policy"]
    assert (policy.name, policy.backend, policy.max_batch_size) == (
        "humanoid_policy",
        "onnxruntime",
        1024,
    )
    assert [(t.name, t.data_type, list(t.dims)) for t in policy.input] == [
        ("state", 11, [69]),
        ("z", 11, [8]),
    ]
    assert list(policy.version_policy.specific.versions) == [2]
    assert policy.parameters[0].value.string_value == version.pinned
    style = configs["humanoid_style"].output[0]
    assert (list(style.dims), style.HasField("reshape"), list(style.reshape.shape)) == (
        [1],
        True,
        [],
    )
    for name, config in configs.items():
        data = (out / name / "2/model.onnx").read_bytes()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        feed = {t.name: np.zeros((3, *_shape(t)), dtype=np.float32) for t in config.input}
        outputs = session.run([t.name for t in config.output], feed)
        assert [np.asarray(a).shape for a in outputs] == [(3, *_shape(t)) for t in config.output]


def test_export_and_import_commands(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--store", str(store.root)]
    out = str(tmp_path / "out")
    assert main([*at, "export", "humanoid@2", "--oci", out]) == 0
    assert capsys.readouterr().out == f"humanoid@2 -> {out}\n"
    assert main([*at, "export", "humanoid@2", "--onnx", out]) == 2
    assert "not an empty folder" in capsys.readouterr().err
    other = ["--store", str(tmp_path / "other")]
    assert main([*other, "import", out]) == 0
    assert "imported" in capsys.readouterr().out
    assert main([*other, "import", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new"] is False


def _oci_blob(root: Path, descriptor: dict[str, Any]) -> bytes:
    algorithm, _, name = descriptor["digest"].partition(":")
    data = (root / "blobs" / algorithm / name).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (descriptor["size"], name)
    return data


def _shape(tensor: Any) -> tuple[int, ...]:
    """The model's shape without its batch: `reshape` where there is one."""
    return tuple(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)


# Fields of Triton's model_config.proto that an export uses; text needs no field numbers.
TRITON = {
    "Shape": {"shape": ("int64", True)},
    "Tensor": {
        "name": ("string", False),
        "data_type": ("DataType", False),
        "dims": ("int64", True),
        "reshape": ("Shape", False),
    },
    "Batching": {"max_queue_delay_microseconds": ("uint64", False)},
    "Specific": {"versions": ("int64", True)},
    "Policy": {"specific": ("Specific", False)},
    "Value": {"string_value": ("string", False)},
    "Parameter": {"key": ("string", False), "value": ("Value", False)},
    "Config": {
        "name": ("string", False),
        "backend": ("string", False),
        "max_batch_size": ("int32", False),
        "input": ("Tensor", True),
        "output": ("Tensor", True),
        "dynamic_batching": ("Batching", False),
        "version_policy": ("Policy", False),
        "parameters": ("Parameter", True),
    },
}


def _triton_config(path: Path) -> Any:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="model_config.proto", package="inference", syntax="proto3"
    )
    types = file.enum_type.add(name="DataType")
    for number, name in ((0, "TYPE_INVALID"), (11, "TYPE_FP32")):
        types.value.add(name=name, number=number)
    for message, fields in TRITON.items():
        made = file.message_type.add(name=message)
        for number, (name, (kind, repeated)) in enumerate(fields.items(), 1):
            label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            added = made.field.add(name=name, number=number, label=label)
            if kind.islower():
                added.type = getattr(field, f"TYPE_{kind.upper()}")
            else:
                added.type = field.TYPE_ENUM if kind == "DataType" else field.TYPE_MESSAGE
                added.type_name = f".inference.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    config = message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.Config"))()
    return text_format.Parse(path.read_text(), config)
