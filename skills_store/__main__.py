"""`python -m skills_store`: look at a store, move its aliases, tidy it, copy versions and vouch for them.

Publishing is the business of exporters.
Exit status: 0 done, 1 `verify` found faults or no signature, 2 refused, with one line on stderr that says why.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence

from skills_store.commands import browse, exchange, upkeep, vouch
from skills_store.errors import StoreError
from skills_store.opening import open_store

GROUPS = (browse, upkeep, exchange, vouch)


def parser() -> argparse.ArgumentParser:
    # The common options are understood before and after the command; SUPPRESS keeps the latter from undoing the former.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--store", metavar="STORE", help="folder or s3://...; default: $REPERTOIRE_STORE, or skills_store/data"
    )
    common.add_argument("--json", action="store_true", help="for programs")
    top = argparse.ArgumentParser(prog="skills", description="Published skills and controllers.", parents=[common])
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common])

    for group in GROUPS:
        group.describe(command)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    args.json = getattr(args, "json", False)
    try:
        status = args.run(open_store(getattr(args, "store", None)), args)
        sys.stdout.flush()
    except BrokenPipeError:  # `skills ls | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (StoreError, OSError) as error:
        print(f"skills: {error}", file=sys.stderr)
        return 2
    return status


def program() -> int:
    """`main` in a process of its own, which ends before there are cycles worth looking for: a fifth off a long `ls`."""
    gc.disable()
    return main()


if __name__ == "__main__":
    sys.exit(program())
