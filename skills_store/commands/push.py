"""`skills push`: copy a version, and its parent, to another store."""

from __future__ import annotations

import argparse
from contextlib import closing

from skills_store.catalog.text import shorten_digest
from skills_store.commands import output
from skills_store.commands.arguments import parse_store
from skills_store.commands.meter import Meter
from skills_store.open import open_store
from skills_store.store import Store
from skills_store.transfer.copy import copy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="humanoid@7")
    parser.add_argument("--to", type=parse_store, required=True, metavar="STORE")


def run(store: Store, args: argparse.Namespace) -> int:
    return copy_and_print(args, store, open_store(args.to, bundled=False))


def copy_and_print(args: argparse.Namespace, source: Store, target: Store) -> int:
    with closing(Meter()) as meter:
        copied = copy(args.ref, source, target, meter)
    lines = []
    value = []
    for entry in copied:
        state = f"copied to {target.location}" if entry.new else f"is in {target.location} already"
        lines.append(f"{entry.version.ref}  {shorten_digest(entry.version.digest)}  {state}")
        value.append(output.identify(entry.version) | {"new": entry.new})
    return output.print_result(args, "\n".join(lines), value)
