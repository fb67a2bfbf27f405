"""What a process loads: the service and the store's runtime come without the lab."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"torch", "mujoco", "onnx", "obstore", "cryptography"}


@pytest.mark.parametrize(
    "module",
    [
        "serving.app",
        "skills_store.runtime.library",
        "skills_store.__main__",
        "pretrain.motion.importers",
    ],
)
def test_it_loads_nothing_of_the_lab_and_no_extra(module):
    code = f"import {module}, sys; sys.exit(' '.join({HEAVY} & set(sys.modules)) or 0)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
