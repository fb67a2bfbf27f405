"""An OCI export through a registry, by skopeo and Debian's docker-registry."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from skills_store.store import Store
from skills_store.transfer.formats import export, import_folder
from skills_store.transfer.oci import IMAGE_TYPE
from tests import tiny

MISSING = [program for program in ("skopeo", "docker-registry") if shutil.which(program) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """host:port of an empty registry on the loopback address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    settings = {
        "version": 0.1,
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry")}},
        "http": {"addr": address},
    }
    (tmp_path / "registry.yml").write_text(json.dumps(settings))  # JSON is YAML
    command = ["docker-registry", "serve", str(tmp_path / "registry.yml")]
    with (
        (tmp_path / "registry.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            await_registry(f"http://{address}/v2/", process, tmp_path / "registry.log")
            yield address
        finally:
            process.terminate()


def await_registry(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail(f"the registry did not start: {log.read_text()[-500:]}")


def skopeo_copy(source: str, target: str) -> None:
    command = [
        "skopeo",
        "--insecure-policy",
        "copy",
        "--src-tls-verify=false",
        "--dest-tls-verify=false",
    ]
    run = subprocess.run(
        [*command, source, target], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr


def pull(address: str, name: str, tag: str, folder: Path) -> None:
    """What `oras pull` does: each layer that has a title becomes the file of that name."""
    base = f"http://{address}/v2/{name}"
    image = (
        httpx.get(f"{base}/manifests/{tag}", headers={"Accept": IMAGE_TYPE})
        .raise_for_status()
        .json()
    )
    folder.mkdir()
    for layer in image["layers"]:
        blob = httpx.get(f"{base}/blobs/{layer['digest']}").raise_for_status()
        (folder / layer["annotations"]["org.opencontainers.image.title"]).write_bytes(blob.content)


def test_version_is_unchanged_by_a_push_and_pull_through_a_registry(
    tmp_path: Path, registry: str
) -> None:
    store = Store(tmp_path / "store")
    for seed in range(2):
        tiny.publish_tiny(store, seed=seed)
    version = export(store, "humanoid@2", "oci", tmp_path / "out")
    skopeo_copy(f"oci:{tmp_path}/out:2", f"docker://{registry}/skills/humanoid:2")

    skopeo_copy(f"docker://{registry}/skills/humanoid:2", f"oci:{tmp_path}/copy:2")
    pull(registry, "skills/humanoid", "2", tmp_path / "pulled")
    assert {path.name for path in (tmp_path / "pulled").iterdir()} == {
        "manifest.json",
        *tiny.skills_files(),
    }
    for folder in ("copy", "pulled"):
        other = Store(tmp_path / f"store of {folder}")
        here, new = import_folder(other, tmp_path / folder)
        assert (here.ref, here.digest, new) == ("humanoid@1", version.digest, True)
        assert {file: other.read(here, file) for file in here.manifest.files} == tiny.skills_files(
            1
        )
