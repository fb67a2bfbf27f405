"""Imports MuJoCo's Python bindings, also where MUJOCO_GL names a missing library. The error names a
remedy where an upgrade has removed them."""

from __future__ import annotations

import os

__all__ = ["mujoco"]

try:
    import mujoco
except (AttributeError, RuntimeError):  # MUJOCO_GL names a missing library; simulation needs none
    _mujoco_gl = os.environ.get("MUJOCO_GL", "")
    os.environ["MUJOCO_GL"] = "disabled"
    import mujoco

    os.environ["MUJOCO_GL"] = _mujoco_gl
except ImportError as error:
    # pip install --upgrade from mujoco 3 to 4 succeeds, but removes the bindings, which moved to
    # another distribution, mujoco-core
    remedy = "pip uninstall -y mujoco mujoco-core, then install this package's extra `train` again"
    raise ImportError(f"{error}; if mujoco was upgraded from 3 to 4: {remedy}") from error
