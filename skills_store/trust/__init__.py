"""Who vouches for a version: envelopes beside its records, Ed25519 over its digest, and whether that is asked for."""
