"""`skills release`: end a lease."""

from __future__ import annotations

import argparse

from skills_store.commands import output
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lease", metavar="LEASE", help="its id, or how it begins")


def run(store: Store, args: argparse.Namespace) -> int:
    store.release(args.lease)
    return output.print_result(
        args, f"lease {args.lease} is released", {"lease": args.lease, "released": True}
    )
