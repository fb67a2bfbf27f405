"""`skills keygen`: make an Ed25519 key pair to sign with."""

from __future__ import annotations

import argparse
from types import ModuleType

from skills_store.commands import output
from skills_store.commands.arguments import parse_path
from skills_store.errors import StoreError
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=parse_path, metavar="FILE", help="new private key; FILE.pub is its public half"
    )


def run(store: Store, args: argparse.Namespace) -> int:
    key = load_signing().generate_key(args.path)
    public = f"{args.path}.pub"
    text = f"private key {args.path}, public key {public}, id {key[:16]}"
    return output.print_result(
        args, text, {"private": str(args.path), "public": public, "key": key}
    )


def load_signing() -> ModuleType:
    """Raises StoreError without cryptography, which is an extra."""
    try:
        from skills_store.signatures import signing
    except ImportError as error:
        raise StoreError(
            f"signing needs the cryptography package (repertoire[sign]): {error}"
        ) from error
    return signing
