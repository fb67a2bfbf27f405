"""A digest of what clients rely on, the same for all versions that can replace one another."""

from __future__ import annotations

import hashlib
import json

from skills_store.manifest import Manifest


def compute_contract_digest(manifest: Manifest) -> str:
    """sha256 of what a client of the graphs relies on: body, tensors, latent and action; not
    weights, card or lineage.
    """
    graphs = {
        name: graph.model_dump(mode="json", include={"opset", "inputs", "outputs"})
        for name, graph in manifest.graphs.items()
    }
    relied_on = manifest.model_dump(
        mode="json", include={"kind", "observations", "character", "action"}
    )
    document = {**relied_on, "graphs": graphs, "latent_dim": manifest.latent.dim}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
