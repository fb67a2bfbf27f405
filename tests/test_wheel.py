"""A package installed from a wheel: no command writes to its folder or the working folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pretrain.motion.fetch import fetched
from skills_store import places

ROOT = Path(__file__).parents[1]
PACKAGES = ("pretrain", "hlc", "serving", "skills_store", "benchmarks")
FILES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE")

# Runs a module as `python -m` does, in an interpreter for which some folders are read-only: tests
# may run as root, for which permission bits do not count.
SEALED = """
import os, runpy, sys
sealed, module, sys.argv = sys.argv[1].split(os.pathsep), sys.argv[2], sys.argv[2:]
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"}
CHANGES |= {"os.truncate", "os.chmod"}

def refuse(event, args):
    if event == "open":
        writes, paths = args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT), args[:1]
    else:
        writes, paths = event in CHANGES, args[:2]
    for path in paths if writes else ():
        if isinstance(path, str) and os.path.abspath(path).startswith(tuple(sealed)):
            raise PermissionError(30, "Read-only file system", path)

sys.addaudithook(refuse)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Installation:
    packages: Path
    home: Path
    working: Path

    def run(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`python -m module arguments` where packages and working folder are read-only."""
        sealed = f"{self.packages}:{self.working}"
        env = {
            "HOME": str(self.home),
            "PYTHONPATH": str(self.packages),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-c", SEALED, sealed, module, *arguments]
        return subprocess.run(
            command,
            cwd=self.working,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    def files(self) -> set[Path]:
        return {path for folder in (self.packages, self.working) for path in folder.rglob("*")}


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--no-index", "--no-deps"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    packages = folder / "packages"
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    for name in FILES:
        shutil.copy(ROOT / name, source)
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("*.whl")
    pip("install", "--target", str(packages), str(wheel))
    home = folder / "Zoë 日本"
    working = folder / "working"
    for each in (home, working):
        each.mkdir()
    return Installation(packages, home, working)


@pytest.mark.parametrize(
    "module", ["pretrain.train", "pretrain.tracking", "hlc.train", "hlc.plan", "hlc.amp"]
)
def test_configuration_files_are_in_the_wheel(installation: Installation, module: str) -> None:
    done = installation.run(module, "--help")
    assert done.returncode == 0, done.stderr
    assert "\nkeys:\n" in done.stdout


def test_package_and_working_folders_are_read_only(installation: Installation) -> None:
    for place in (installation.packages, installation.working):
        done = installation.run(
            "skills_store",
            "--store",
            f"{place}/store",
            "pull",
            "reach",
            "--from",
            bundled(installation),
        )
        assert (done.returncode, "Read-only file system" in done.stderr) == (2, True), done.stderr


def bundled(installation: Installation) -> str:
    return str(installation.packages / "skills_store" / "bundled")


DEFAULTS = """
import json, sys
from hlc.config import CONFIG_MODEL
from pretrain.config import PretrainConfig
from serving.settings import Settings
from skills_store import places
from skills_store.open import cache_folder
from skills_store.store import default_root

NAMES = ("store", "runs", "cards", "keys", "clips", "peers", "buckets")
found = {name: str(getattr(places, name)()) for name in NAMES}
found |= {"default": str(default_root()), "pretrain": PretrainConfig().runs}
found |= {"hlc": CONFIG_MODEL().runs, "bucket": str(cache_folder("s3://a/b").parent)}
found |= {"code": places.__file__, "served": str(Settings().store)}
print(json.dumps(found))
"""


def test_every_default_is_in_the_users_folders(installation: Installation) -> None:
    (installation.home / "defaults.py").write_text(DEFAULTS)
    env = {"HOME": str(installation.home), "PYTHONPATH": str(installation.packages)}
    command = [sys.executable, str(installation.home / "defaults.py")]
    done = subprocess.run(
        command, cwd=installation.working, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    data = installation.home / ".local/share/repertoire"
    cache = installation.home / ".cache/repertoire"
    assert found == {
        "store": f"{data}/store",
        "default": f"{data}/store",
        "runs": f"{data}/runs",
        "pretrain": f"{data}/runs",
        "hlc": f"{data}/runs",
        "cards": f"{data}/cards",
        "keys": f"{data}/keys.json",
        "clips": f"{cache}/motions",
        "peers": f"{cache}/peers",
        "buckets": str(cache),
        "bucket": str(cache),
        "code": f"{installation.packages}/skills_store/places.py",
        "served": f"{data}/store",
    }


def test_the_bundled_libraries_are_found_without_a_store(installation: Installation) -> None:
    before = installation.files()
    done = installation.run("skills_store", "ls", "--json")
    assert done.returncode == 0, done.stderr
    versions = {(row["ref"], row["source"]) for row in json.loads(done.stdout)["versions"]}
    assert ("humanoid@4", "bundled") in versions
    assert installation.files() == before


def test_training_and_commands_run_in_a_read_only_folder(
    installation: Installation,
) -> None:
    before = installation.files()
    clips = fetched(places.clips())
    shutil.copytree(clips, installation.home / ".cache/repertoire/motions" / clips.name)
    for module, *arguments in (
        ("pretrain.train", "preset=toy", "samples=256", "publish=false"),
        ("skills_store", "pull", "humanoid@1", "--from", bundled(installation)),
        ("serving.keys", "add", "game", "act"),
    ):
        done = installation.run(module, *arguments)
        assert done.returncode == 0, done.stderr[-2000:]
    data = installation.home / ".local/share/repertoire"
    assert len(list(data.glob("runs/toy-*/checkpoint.pt"))) == 1
    assert (data / "store/skills/humanoid/v/00000001.json").is_file()
    assert (data / "keys.json").is_file()
    assert installation.files() == before
