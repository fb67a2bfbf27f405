"""The 20 clips that ship inside the `pybullet` wheel: fetched once, checksummed, never installed.

pybullet itself is no dependency (it has no wheel for Python >= 3.12): pip only downloads the file,
which is a zip."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "pybullet==3.2.7"
PREFIX = "pybullet_data/data/motions/"
SOURCE = f"{WHEEL} wheel, {PREFIX}"
LICENCE = "Zlib AND MIT"  # pybullet's, and DeepMimic's, where the clips come from; see NOTICE
# of the 15, then the 5 walker/, each sorted
SHA256 = "8d8ce0164634a9c373de77080a068c34c99162951ddc1edaea64903c6b7e055c"


def fetched(cache: Path) -> Path:
    """Folder with the clips, fetching them on first use. OSError with a remedy where that fails."""
    folder = cache / "pybullet-3.2.7"
    if not folder.exists():
        print(
            f"fetching {WHEEL} for its motion clips (103 MB, once) into {folder}",
            file=sys.stderr,
            flush=True,
        )
        _make(cache)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            unpacked = Path(temporary) / "clips"
            _unpack(_download(Path(temporary)), unpacked)
            _check(unpacked)
            _place(unpacked, folder)
    return folder


def _make(cache: Path) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"no clips in {cache}: {error.strerror}; REPERTOIRE_CACHE names another folder"
        ) from error


def _place(unpacked: Path, folder: Path) -> None:
    """Atomic; where another process was faster, its copy, which passed the same check, is kept."""
    try:
        os.replace(unpacked, folder)
    except OSError:
        if not folder.is_dir():
            raise


def _download(folder: Path) -> Path:
    target = [
        "--platform",
        "manylinux2014_x86_64",
        "--implementation",
        "cp",
        "--python-version",
        "3.11",
        "--abi",
        "cp311",
    ]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        WHEEL,
        "--no-deps",
        "--only-binary=:all:",
        *target,
        "-d",
        str(folder),
    ]
    result = subprocess.run(pip, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if result.returncode or not wheels:
        reason = result.stderr.strip().splitlines()[-1:] or ["pip gave no reason"]
        raise OSError(
            f"could not fetch {WHEEL}: {reason[0]}. Check pip's access to its package index "
            "and try again"
        )
    return wheels[0]


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            relative = entry.removeprefix(PREFIX)
            wanted = relative.startswith(("humanoid3d_", "walker/")) and relative.endswith(".txt")
            if relative != entry and wanted:
                target = folder / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(entry))


def _check(folder: Path) -> None:
    files = sorted(folder.glob("humanoid3d_*.txt")) + sorted((folder / "walker").glob("*.txt"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    if digest != SHA256:
        raise OSError(f"the clips in {WHEEL} have sha256 {digest}, expected {SHA256}: not used")
