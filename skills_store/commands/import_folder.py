"""`skills import`: publish what an export wrote."""

from __future__ import annotations

import argparse

from skills_store.catalog.text import shorten_digest
from skills_store.commands import output
from skills_store.commands.arguments import parse_path
from skills_store.store import Store
from skills_store.transfer.formats import import_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=parse_path, metavar="DIR")


def run(store: Store, args: argparse.Namespace) -> int:
    version, new = import_folder(store, args.directory)
    state = "imported" if new else "is here already"
    line = f"{version.ref}  {shorten_digest(version.digest)}  {state}"
    return output.print_result(args, line, output.identify(version) | {"new": new})
