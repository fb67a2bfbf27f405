"""Commands for signatures: keygen, sign, verify-signature."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import ModuleType

from skills_store.catalog.text import shorten_digest
from skills_store.commands import output
from skills_store.commands.arguments import path
from skills_store.errors import StoreError, UntrustedVersion
from skills_store.signatures.trust_policy import TrustPolicy
from skills_store.store import Store


def keygen(_: Store, args: argparse.Namespace) -> int:
    key = _load_signing().generate_key(args.path)
    text = f"private key {args.path}, public key {args.path}.pub, id {key[:16]}"
    return output.print_result(args, text, {"private": str(args.path), "public": f"{args.path}.pub", "key": key})


def sign(store: Store, args: argparse.Namespace) -> int:
    signing = _load_signing()
    version = store.resolve(args.ref)
    if faults := store.verify(version.ref):  # no signature over damaged files
        raise StoreError(f"{version.ref} is not signed: {faults[0].message}")
    key = signing.read_private_key(args.key)
    store.add_signature(version, signing.sign(version.name, version.digest, key))
    name = signing.key_id(key.public_key())
    text = f"{version.ref}  {shorten_digest(version.digest)}  signed by {name[:16]}"
    return output.print_result(args, text, output.identify(version) | {"key": name})


def verify_signature(store: Store, args: argparse.Namespace) -> int:
    version = store.resolve(args.ref)
    trust = TrustPolicy("require", tuple(args.keys)) if args.keys else TrustPolicy.from_environment()
    try:
        keys, text = trust.find_signers(store, version), ""
    except UntrustedVersion as error:
        keys, text = (), str(error)
    text = text or f"{version.ref}  {shorten_digest(version.digest)}  signed by {', '.join(key[:16] for key in keys)}"
    output.print_result(args, text, output.identify(version) | {"keys": list(keys)})
    return 0 if keys else 1


def describe(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add each command and its arguments; `command` makes its parser."""
    pair = command("keygen", "make an Ed25519 key pair to sign with")
    pair.add_argument("path", type=path, metavar="FILE", help="new private key; FILE.pub is its public half")
    pair.set_defaults(run=keygen)
    word = command("sign", "sign a version with a private key")
    word.add_argument("ref", metavar="REF", help="humanoid@7")
    word.add_argument("--key", type=path, required=True, metavar="FILE", help="private key of `keygen`")
    word.set_defaults(run=sign)
    asked = command("verify-signature", "which trusted keys signed a version; status 1 without one")
    asked.add_argument("ref", metavar="REF", help="humanoid@7")
    asked.add_argument(
        "--keys",
        type=path,
        action="append",
        metavar="PATH",
        help="a public key or a folder of *.pub, and once more for another; default: $REPERTOIRE_TRUSTED_KEYS",
    )
    asked.set_defaults(run=verify_signature)


def _load_signing() -> ModuleType:
    # cryptography is an extra: only those who sign or check need it.
    try:
        from skills_store.signatures import signing
    except ImportError as error:
        raise StoreError(f"signing needs the cryptography package (repertoire[sign]): {error}") from error
    return signing
