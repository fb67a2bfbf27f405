"""`python -m skills_store`: list, copy, sign and delete versions, and move aliases.

Exporters publish; this program publishes only imports. Exit status: 0 done, 1 `verify` found faults
or no signature, 2 refused, 130 interrupted. The reason is one line on stderr, or with --json one
object there: {"code": ..., "message": ...}.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import NoReturn

from skills_store.catalog.text import escape
from skills_store.errors import InvalidArgument, StoreError
from skills_store.standard_output import discard_output

INTERRUPTED = 128 + 2  # as shells report it


class Parser(argparse.ArgumentParser):
    """Raises InvalidArgument, printed like any error: as one line or an object."""

    def error(self, message: str) -> NoReturn:
        raise InvalidArgument(f"{message}; see `{self.prog} --help`")


def make_parser() -> Parser:
    # Imported here: the imports take time, and an interrupt during them is handled like any other.
    from skills_store.commands import arguments
    from skills_store.commands.registry import COMMANDS, load_command

    # The common options may precede or follow the command; SUPPRESS keeps defaults of the second
    # place from overwriting values of the first.
    common = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--store",
        type=arguments.parse_store,
        metavar="STORE",
        help="folder or s3://...; default: $REPERTOIRE_STORE, or the one of skills_store/places.py",
    )
    common.add_argument("--json", action="store_true", help="for programs")
    top = Parser(prog="skills", description="Published skills and controllers.", parents=[common])
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, text) in COMMANDS.items():
        command = load_command(name)
        parser = commands.add_parser(name, help=text, description=text, parents=[common])
        command.add_arguments(parser)
        parser.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    as_json = "--json" in argv  # parse errors have the same form
    try:
        return _run(argv)
    except BrokenPipeError:  # `skills ls | head`
        discard_output()
        return 0
    except StoreError as error:
        _print_error(error.code, str(error), as_json)
    except OSError as error:
        _print_error("os_error", str(error), as_json)
    except KeyboardInterrupt:
        _print_error("interrupted", "interrupted", as_json)
        return INTERRUPTED
    return 2


def program() -> int:
    """`main` in a process of its own, without garbage collection: it ends before cycles matter.
    That saves a fifth of a long `ls`.
    """
    gc.disable()
    if sys.stderr is None:  # 2>&-: otherwise errors would be printed among the results
        # open until the process ends
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):  # a licence may have letters that the terminal lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    return main()


def _run(argv: Sequence[str]) -> int:
    if sys.stdout is None:
        raise StoreError(
            "standard output is closed; nothing was done, since its result could not be shown"
        )
    try:
        args = make_parser().parse_args(argv)
    finally:
        sys.stdout.flush()  # --help exits here, maybe into a closed pipe
    args.json = getattr(args, "json", False)

    from skills_store.open import open_store

    status = args.run(open_store(getattr(args, "store", None)), args)
    sys.stdout.flush()
    return status


def _print_error(code: str, message: str, as_json: bool) -> None:
    print(
        json.dumps({"code": code, "message": message}) if as_json else f"skills: {escape(message)}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    sys.exit(program())
