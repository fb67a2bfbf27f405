"""Ed25519 signatures over a version's digest, key files, and the policy that says whether they are
required.
"""
