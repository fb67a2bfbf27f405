"""The key file of the service, from the command line. A key is printed once, when it is made.

python -m serving.keys add game act --rate 2000      prints the key: game.<43 letters>
python -m serving.keys ls | rm game
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError

from serving.access.keys import SCOPES, Key, hold_lock, make_key, read, write
from skills_store import places
from skills_store.errors import StoreError


def main() -> int:
    try:
        default = places.keys()
    except StoreError as error:
        print(f"serving.keys: {error}", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(
        prog="python -m serving.keys", description="API keys of the service"
    )
    parser.add_argument(
        "--file", type=Path, default=default, help=f"$REPERTOIRE_KEYS, now {default}"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("ls", help="names, scopes and rates")
    add = commands.add_parser("add", help="make a key and print it, this once")
    add.add_argument("name")
    add.add_argument("scopes", nargs="+", choices=SCOPES)
    add.add_argument("--rate", type=float, help="requests/s")
    commands.add_parser("rm", help="take a key away").add_argument("name")
    options = parser.parse_args()
    try:
        print(_run_command(options), end="")
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        print(f"serving.keys: {field}: {first['msg']}, got {first['input']!r}", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:
        print(f"serving.keys: {' '.join(str(error).split())[:300]}", file=sys.stderr)
        return 2
    return 0


def _run_command(options: argparse.Namespace) -> str:
    if options.command == "ls":
        keys = _read(options.file)
        return "".join(
            f"{key.name}\t{','.join(key.scopes)}\t{key.rate or '-'}\n" for key in keys.values()
        )
    with hold_lock(options.file):
        return _change(options, _read(options.file))


def _read(file: Path) -> dict[str, Key]:
    return {key.name: key for key in read(file).keys} if file.exists() else {}


def _change(options: argparse.Namespace, keys: dict[str, Key]) -> str:
    if options.command == "add":
        if options.name in keys:
            raise ValueError(
                f"there is a key {options.name!r} already; rm it first, or take another name"
            )
        token, keys[options.name] = make_key(options.name, options.scopes, options.rate)
        write(options.file, keys.values())
        return f"{token}\n"
    if options.name not in keys:
        raise ValueError(f"no key {options.name!r}; there are: {', '.join(keys) or 'none'}")
    del keys[options.name]
    write(options.file, keys.values())
    return ""


if __name__ == "__main__":
    sys.exit(main())
