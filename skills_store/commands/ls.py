"""`skills ls`: versions, newest first."""

from __future__ import annotations

import argparse
from typing import Any

from skills_store.commands import output
from skills_store.store import Store
from skills_store.version import Fault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME")


def run(store: Store, args: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    faults: list[Fault] = []
    for name in [args.name] if args.name else store.names():
        summaries, broken = store.summaries(name)
        faults += broken
        rows += output.describe_rows(store, list(reversed(summaries)))
    return output.print_listing(args, rows, faults, f"no skills in {store.location}")
