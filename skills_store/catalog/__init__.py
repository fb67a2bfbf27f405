"""Search and comparison of versions by their manifests."""
