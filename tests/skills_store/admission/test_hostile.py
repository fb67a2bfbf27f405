"""Hostile files are refused with a reason, nothing of them is on the disk, and the process that looked at them lives on."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from skills_store.errors import CorruptBlob, GateRefused
from skills_store.library import SkillLibrary
from skills_store.store import Store
from tests import tiny
from tests.skills_store.admission.hostile import HOSTILE, spoiled

MIB = 2**20
ROOT = Path(__file__).parents[3]  # of the checkout


def publish(store: Store, policy: bytes) -> None:
    store.publish(tiny.skills_manifest(), tiny.skills_files() | {"policy.onnx": policy})


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_is_refused_and_nothing_published(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(GateRefused, match=HOSTILE[name][1]):
        publish(store, spoiled(name))
    assert not store.root.exists()


def test_one_process_outlives_them_all(tmp_path: Path) -> None:
    """At least 40, one after another, in less than 50 MiB; and then it publishes what is good, and runs it."""
    command = [sys.executable, "-c", OUTLIVES, str(tmp_path / "store")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    refused, grown, targets = run.stdout.split()
    assert int(refused) == len(HOSTILE) >= 40
    assert int(grown) < 50 * MIB
    assert int(targets) == len(tiny.JOINTS)


OUTLIVES = """
import resource, sys
import numpy as np
from skills_store.errors import GateRefused
from skills_store.library import SkillLibrary
from skills_store.store import Store
from tests import tiny
from tests.skills_store.admission.hostile import HOSTILE, spoiled
from tests.skills_store.admission.test_hostile import publish, resident

store, files, refused = Store(sys.argv[1]), {name: spoiled(name) for name in HOSTILE}, 0
publish(store, tiny.policy())  # all that is imported for it is
before = resident()
for policy in files.values():
    try:
        publish(store, policy)
    except GateRefused:
        refused += 1
library = SkillLibrary.open(store, "humanoid")
act = library.act(np.zeros((1, tiny.STATE)), np.ones((1, tiny.LATENT)))
print(refused, resident() - before, act.shape[1])
"""


def resident() -> int:
    """The most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("data", [b"", b"not onnx", b"\x00" * 64, b"PK\x03\x04" + b"x" * 100])
def test_garbage_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(GateRefused, match="not an ONNX file"):
        publish(Store(tmp_path / "store"), data)


def test_truncated_at_every_kilobyte_and_less_is_refused(tmp_path: Path) -> None:
    data, store = tiny.policy(), Store(tmp_path / "store")
    for length in (*range(0, len(data), 1024), *range(1, len(data), 331), len(data) - 1):
        with pytest.raises(GateRefused):
            publish(store, data[:length])
    assert not store.root.exists()


def test_swapped_after_it_was_published_it_is_refused_by_its_digest(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    publish(store, tiny.policy())
    digest = store.resolve("humanoid").manifest.files["policy.onnx"].digest
    blob = store.root / "blobs/sha256" / digest.removeprefix("sha256:")
    blob.chmod(0o644)
    for name in ("3,000 functions deep", "a compiled blob"):
        blob.write_bytes(spoiled(name))
        with pytest.raises(CorruptBlob):
            SkillLibrary.open(store, "humanoid")
