"""What a process loads: the service and the store's runtime come without the lab."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["serving.app", "skills_store.library", "pretrain.motion.importers"])
def test_it_loads_neither_torch_nor_mujoco(module):
    code = f"import {module}, sys; sys.exit(' '.join({{'torch', 'mujoco', 'onnx'}} & set(sys.modules)) or 0)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
