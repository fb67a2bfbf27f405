"""Nearest: which training clips a z is close to. Pure; z itself comes from the library."""

from __future__ import annotations

import numpy as np

from skills_store.manifest import Latent

COUNT = 5


def nearest(z: np.ndarray, latent: Latent) -> list[dict[str, str | float]]:
    """Training clips by cosine to z, (D,), nearest first. Empty if the version has no clips."""
    if not latent.clips:
        return []
    names = list(latent.clips)
    clips = np.array(list(latent.clips.values()))
    cosine = clips @ z / np.maximum(np.linalg.norm(clips, axis=1) * np.linalg.norm(z), 1e-12)
    return [
        {"clip": names[i], "cosine": round(float(cosine[i]), 6)}
        for i in np.argsort(-cosine)[:COUNT]
    ]
