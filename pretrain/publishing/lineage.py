"""The lineage of a version: clips, configuration, code, packages, machine."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from pretrain.motion.dataset import Dataset
from skills_store import places
from skills_store.manifest import Clip, Lineage
from skills_store.processors import count_processors

PACKAGES = ("torch", "mujoco", "numpy", "onnx", "onnxruntime")


def describe_clips(dataset: Dataset) -> tuple[Clip, ...]:
    """The manifest's entry of each clip, in the order of the dataset."""
    return tuple(
        Clip(
            name=clip.name,
            digest=clip.digest,
            source=clip.source,
            licence=clip.licence,
            weight=weight,
            mirror_of=clip.mirror_of or None,
        )
        for clip, weight in zip(dataset.clips, dataset.weights, strict=True)
    )


def make_lineage(config: dict[str, Any], seed: int, clips: tuple[Clip, ...]) -> Lineage:
    """The lineage of a version made now, by this machine and code."""
    # Code installed from a wheel may be inside another project's checkout, with another commit.
    commit = _git("rev-parse", "HEAD") if places.checkout() else None
    return Lineage(
        clips=clips,
        config=config,
        seed=seed,
        git_commit=commit,
        git_dirty=bool(_git("status", "--porcelain")) if commit else None,
        packages={name: metadata.version(name) for name in PACKAGES},
        hardware=f"{_processor()}, {count_processors()} cores, {platform.system()}",
    )


def _processor() -> str:
    """Model and architecture on Linux, elsewhere the architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return ", ".join([*models[:1], platform.machine()])


def _git(*args: str) -> str | None:
    """The output of a git command in the checkout of this code; None without one."""
    try:
        run = subprocess.run(
            ["git", *args],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.strip()
