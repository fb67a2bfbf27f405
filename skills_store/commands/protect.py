"""`skills protect`: refuse to move an alias to a version whose card is worse."""

from __future__ import annotations

import argparse

from skills_store.commands import output
from skills_store.commands.arguments import parse_words
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("alias", metavar="ALIAS")
    parser.add_argument("--off", action="store_true", help="allow every move again")
    parser.add_argument("--why", type=parse_words, default="", help="kept in the log")


def run(store: Store, args: argparse.Namespace) -> int:
    version = store.protect(args.name, args.alias, args.why, on=not args.off)
    return output.print_move(
        args, version, "  (protected no more)" if args.off else "  (protected)"
    )
