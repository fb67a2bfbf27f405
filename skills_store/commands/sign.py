"""`skills sign`: sign a version with a private key."""

from __future__ import annotations

import argparse

from skills_store.catalog.text import shorten_digest
from skills_store.commands import output
from skills_store.commands.arguments import parse_path
from skills_store.commands.keygen import load_signing
from skills_store.errors import StoreError
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="humanoid@7")
    parser.add_argument(
        "--key", type=parse_path, required=True, metavar="FILE", help="private key of `keygen`"
    )


def run(store: Store, args: argparse.Namespace) -> int:
    signing = load_signing()
    version = store.resolve(args.ref)
    if faults := store.verify(version.ref):  # no signature over damaged files
        raise StoreError(f"{version.ref} is not signed: {faults[0].message}")
    key = signing.read_private_key(args.key)
    store.add_signature(version, signing.sign(version.name, version.digest, key))
    id = signing.key_id(key.public_key())
    line = f"{version.ref}  {shorten_digest(version.digest)}  signed by {id[:16]}"
    return output.print_result(args, line, output.identify(version) | {"key": id})
