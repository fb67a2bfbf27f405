"""`skills alias`: point an alias at a version, or list the aliases."""

from __future__ import annotations

import argparse

from skills_store.catalog.text import format_table
from skills_store.commands import output
from skills_store.commands.arguments import parse_number, parse_words
from skills_store.errors import InvalidArgument
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("alias", nargs="?", metavar="ALIAS")
    parser.add_argument("number", nargs="?", type=parse_number, metavar="NUMBER")
    parser.add_argument("--why", type=parse_words, default="", help="kept in the log")
    parser.add_argument(
        "--force",
        action="store_true",
        help="move a protected alias even to a version whose card is worse",
    )


def run(store: Store, args: argparse.Namespace) -> int:
    if args.number is not None:
        version = store.alias(args.name, args.alias, args.number, args.why, force=args.force)
        return output.print_move(args, version)
    if args.alias is not None:
        raise InvalidArgument(f"alias {args.name} {args.alias} needs a version NUMBER to point at")
    return _print_aliases(store, args)


def _print_aliases(store: Store, args: argparse.Namespace) -> int:
    aliases = {}
    protected = {}
    rows = []
    for name in [args.name] if args.name else store.names():
        aliases[name] = {"latest": store.latest(name), **store.aliases(name)}
        marks = store.list_protected(name)
        if marks:
            protected[name] = sorted(marks)
        for alias, number in aliases[name].items():
            rows.append((name, alias, number, "protected" if alias in marks else ""))
    text = format_table(("SKILL", "ALIAS", "VERSION", ""), rows)
    # No skill can be named @protected.
    return output.print_result(args, text, aliases | {"@protected": protected})
