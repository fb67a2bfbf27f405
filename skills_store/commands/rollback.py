"""`skills rollback`: point an alias back at its earlier version."""

from __future__ import annotations

import argparse

from skills_store.commands import output
from skills_store.commands.arguments import parse_words
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("alias", metavar="ALIAS")
    parser.add_argument("--why", type=parse_words, default="", help="kept in the log")


def run(store: Store, args: argparse.Namespace) -> int:
    version = store.rollback(args.name, args.alias, args.why)
    return output.print_move(args, version, "  (rollback)")
