"""`skills verify-signature`: which trusted keys signed a version. Status 1 without one."""

from __future__ import annotations

import argparse

from skills_store.catalog.text import shorten_digest
from skills_store.commands import output
from skills_store.commands.arguments import parse_path
from skills_store.errors import UntrustedVersion
from skills_store.signatures.trust_policy import TrustPolicy
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="humanoid@7")
    parser.add_argument(
        "--keys",
        type=parse_path,
        action="append",
        metavar="PATH",
        help="a public key or a folder of *.pub; repeatable; default: $REPERTOIRE_TRUSTED_KEYS",
    )


def run(store: Store, args: argparse.Namespace) -> int:
    version = store.resolve(args.ref)
    trust = (
        TrustPolicy("require", tuple(args.keys)) if args.keys else TrustPolicy.from_environment()
    )
    try:
        keys = trust.find_signers(store, version)
        signers = ", ".join(key[:16] for key in keys)
        text = f"{version.ref}  {shorten_digest(version.digest)}  signed by {signers}"
    except UntrustedVersion as error:
        keys = ()
        text = str(error)
    output.print_result(args, text, output.identify(version) | {"keys": list(keys)})
    return 0 if keys else 1
