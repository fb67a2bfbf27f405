"""Inadmissible models are refused with a reason, and leave no file and little memory behind."""

from __future__ import annotations

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skills_store.admission import gate
from skills_store.admission.gate import CAPS
from skills_store.errors import CorruptBlob, GateRefusal
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from tests import tiny
from tests.skills_store.admission.inadmissible import CAPPED, INADMISSIBLE, changed

MIB = 2**20
ROOT = Path(__file__).parents[3]  # of the checkout


def publish(store: Store, policy: bytes) -> None:
    store.publish(tiny.skills_manifest(), tiny.skills_files() | {"policy.onnx": policy})


@pytest.mark.parametrize("name", INADMISSIBLE)
def test_an_inadmissible_model_is_refused_and_nothing_published(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "store")
    change, reason = INADMISSIBLE[name]
    with pytest.raises(GateRefusal, match=reason):
        publish(store, changed(change))
    assert not store.root.exists()


@pytest.mark.parametrize("name", CAPPED)
def test_model_at_a_cap_is_admitted_and_beyond_is_refused(name: str) -> None:
    change, cap, count = CAPPED[name]
    data = changed(change)
    gate.admit("policy", data, tiny.POLICY, replace(CAPS, **{cap: count}))
    with pytest.raises(GateRefusal, match=rf"\b{count} .*over the cap of {count - 1}\b"):
        gate.admit("policy", data, tiny.POLICY, replace(CAPS, **{cap: count - 1}))


def test_one_process_refuses_every_inadmissible_model(tmp_path: Path) -> None:
    """At least 50 refusals in less than 50 MiB; then a valid model is published and run."""
    refused, grown, targets = run(PUBLISH_EACH, tmp_path)
    assert int(refused) == len(INADMISSIBLE) >= 50
    assert int(grown) < 50 * MIB
    assert int(targets) == len(tiny.JOINTS)


def test_inadmissible_models_use_little_memory_without_a_gate(tmp_path: Path) -> None:
    """onnx.checker and ONNX Runtime load or refuse each of them."""
    read, grown = run(READ_EACH, tmp_path)
    assert int(read) == len(INADMISSIBLE) + len(CAPPED)
    assert int(grown) < 200 * MIB


def run(program: str, folder: Path) -> list[str]:
    """The words that `program` prints in a process of its own, in `folder`."""
    command = [sys.executable, "-c", program, str(folder / "store")]
    path = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


PUBLISH_EACH = """
import sys
import numpy as np
from skills_store.errors import GateRefusal
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from tests import tiny
from tests.skills_store.admission.inadmissible import INADMISSIBLE, changed
from tests.skills_store.admission.test_inadmissible import publish, resident

store = Store(sys.argv[1])
files = [changed(change) for change, _ in INADMISSIBLE.values()]
refused = 0
publish(store, tiny.policy())  # imports everything
before = resident()
for policy in files:
    try:
        publish(store, policy)
    except GateRefusal:
        refused += 1
library = SkillLibrary.open(store, "humanoid")
act = library.act(np.zeros((1, tiny.STATE)), np.ones((1, tiny.LATENT)))
print(refused, resident() - before, act.shape[1])
"""

READ_EACH = """
import onnx, onnxruntime
from tests import tiny
from tests.skills_store.admission.inadmissible import CAPPED, INADMISSIBLE, changed
from tests.skills_store.admission.test_inadmissible import resident

def read(data):
    for reader in (
        lambda: onnx.checker.check_model(onnx.load_model_from_string(data), full_check=True),
        lambda: onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]),
    ):
        try:
            reader()
        except Exception:
            pass  # only the memory counts

onnxruntime.set_default_logger_severity(4)
read(tiny.policy())
before = resident()
files = [changed(change) for change, *_ in (*INADMISSIBLE.values(), *CAPPED.values())]
for data in files:
    read(data)
print(len(files), resident() - before)
"""


def resident() -> int:
    """The peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("data", [b"", b"not onnx", b"\x00" * 64, b"PK\x03\x04" + b"x" * 100])
def test_bytes_that_are_no_onnx_model_are_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(GateRefusal, match="not an ONNX file"):
        publish(Store(tmp_path / "store"), data)


def test_truncated_model_is_refused(tmp_path: Path) -> None:
    data = tiny.policy()
    store = Store(tmp_path / "store")
    for length in (*range(0, len(data), 1024), *range(1, len(data), 331), len(data) - 1):
        with pytest.raises(GateRefusal):
            publish(store, data[:length])
    assert not store.root.exists()


def test_model_swapped_after_publishing_is_refused_by_digest(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    publish(store, tiny.policy())
    digest = store.resolve("humanoid").manifest.files["policy.onnx"].digest
    blob = store.root / "blobs/sha256" / digest.removeprefix("sha256:")
    blob.chmod(0o644)
    for name in ("a function", "external data"):
        blob.write_bytes(changed(INADMISSIBLE[name][0]))
        with pytest.raises(CorruptBlob):
            SkillLibrary.open(store, "humanoid")
