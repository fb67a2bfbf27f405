"""`python -m skills_store`: look at a store, move its aliases, verify it. Publishing is the exporters' business.

Exit status: 0 done, 1 `verify` found faults, 2 refused, with one line on stderr that says why.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skills_store import report
from skills_store.errors import StoreError
from skills_store.store import Store, default_root
from skills_store.version import Fault


def ls(store: Store, args: argparse.Namespace) -> int:
    rows, faults = [], []
    for name in [args.name] if args.name else store.names():
        survey = store.survey(name)
        faults += survey.faults
        rows += [report.summary(v, report.pointing(store, v)) for v in reversed(survey.versions)]
    if args.json:
        _print_json({"versions": rows, "faults": [vars(f) for f in faults]})
    elif rows:
        print(report.listing(rows))
    elif not faults:
        print(f"no skills in {store.root}", file=sys.stderr)
    _warn([] if args.json else faults)
    return 0


def show(store: Store, args: argparse.Namespace) -> int:
    version = store.resolve(args.ref)
    shown = report.detail(version, report.pointing(store, version))
    if args.json:
        _print_json(shown)
    else:
        print(report.page(shown))
    return 0


def alias(store: Store, args: argparse.Namespace) -> int:
    if args.number is not None:
        version = store.alias(args.name, args.alias, args.number, args.why, force=args.force)
        moved = {"name": args.name, "alias": args.alias, "version": version.number, "digest": version.digest}
        if args.json:
            _print_json(moved)
        else:
            print(f"{args.name}@{args.alias} -> {version.ref}  {report.short(version.digest)}")
        return 0
    if args.alias is not None:
        raise StoreError(f"alias {args.name} {args.alias} needs a version NUMBER to point at")
    names = [args.name] if args.name else store.names()
    found = {name: {"latest": store.latest(name), **store.aliases(name)} for name in names}
    if args.json:
        _print_json(found)
    else:
        rows = [(name, key, number) for name, each in found.items() for key, number in each.items()]
        print(report.table(("SKILL", "ALIAS", "VERSION"), rows))
    return 0


def log(store: Store, args: argparse.Namespace) -> int:
    moves = store.log(args.name)
    if args.json:
        _print_json([move.model_dump(mode="json") for move in moves])
    else:
        print(report.history(moves))
    return 0


def verify(store: Store, args: argparse.Namespace) -> int:
    faults = store.verify(args.ref)
    if args.json:
        _print_json({"faults": [vars(f) for f in faults]})
    else:
        _warn(faults)
        print(f"{len(faults)} faults" if faults else f"{args.ref or store.root}: every byte is as published")
    return 1 if faults else 0


COMMANDS: dict[str, Callable[[Store, argparse.Namespace], int]] = {
    "ls": ls,
    "show": show,
    "alias": alias,
    "log": log,
    "verify": verify,
}


def parser() -> argparse.ArgumentParser:
    # The common options are understood before and after the command; SUPPRESS keeps the latter from undoing the former.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--store", type=Path, metavar="DIR", help="default: $REPERTOIRE_STORE, or skills_store/data")
    common.add_argument("--json", action="store_true", help="for programs")
    top = argparse.ArgumentParser(prog="skills", description="Look at a skill store; move aliases.", parents=[common])
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common])

    command("ls", "versions, newest first").add_argument("name", nargs="?", metavar="NAME")
    command("show", "one version: graphs, card, lineage").add_argument("ref", metavar="REF", help="humanoid@latest")
    move = command("alias", "point an alias at a version; without NUMBER, list the aliases")
    move.add_argument("name", nargs="?", metavar="NAME")
    move.add_argument("alias", nargs="?", metavar="ALIAS")
    move.add_argument("number", nargs="?", type=int, metavar="NUMBER")
    move.add_argument("--why", default="", help="kept in the log")
    move.add_argument("--force", action="store_true", help="move prod even to a version whose card is worse")
    command("log", "every move of every alias").add_argument("name", metavar="NAME")
    command("verify", "read and hash everything").add_argument("ref", nargs="?", metavar="REF")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    args.json = getattr(args, "json", False)
    try:
        status = COMMANDS[args.command](Store(getattr(args, "store", default_root())), args)
        sys.stdout.flush()
    except BrokenPipeError:  # `skills ls | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (StoreError, OSError) as error:
        print(f"skills: {error}", file=sys.stderr)
        return 2
    return status


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _warn(faults: Sequence[Fault]) -> None:
    for found in faults:
        print(f"skills: {found.message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
