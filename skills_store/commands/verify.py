"""`skills verify`: read and hash everything, or all of one version."""

from __future__ import annotations

import argparse

from skills_store.commands import output
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="?", metavar="REF")


def run(store: Store, args: argparse.Namespace) -> int:
    faults = store.verify(args.ref)
    if args.json:
        print(output.encode_json({"faults": [vars(fault) for fault in faults]}))
    else:
        output.print_faults(faults)
        print(
            f"{len(faults)} faults"
            if faults
            else f"{args.ref or store.location}: every byte is as published"
        )
    return 1 if faults else 0
