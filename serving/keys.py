"""API keys: who may ask what. A key file holds digests only; the key itself is shown once, when it is made.

    python -m serving.keys add game act --rate 2000      prints the key: game.<43 letters>
    python -m serving.keys ls | rm game

The secret is 256 random bits, so that one SHA-256 of it is as good at rest as a slow hash is for a password.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import os
import secrets
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skills_store import places
from skills_store.errors import StoreError

Scope = Literal["act", "encode", "admin"]
SCOPES: tuple[Scope, ...] = ("act", "encode", "admin")
NOBODY = hashlib.sha256(secrets.token_bytes(32)).hexdigest()


class Key(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scopes: tuple[Scope, ...]
    rate: Annotated[float, Field(gt=0)] | None = None  # requests/s; the service's own limit where absent


class KeyFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[Key, ...] = ()


def read(path: Path) -> KeyFile:
    """Raises OSError or ValueError, which name no digest."""
    try:
        return KeyFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise ValueError(f"{path.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def match(token: str, keys: Mapping[str, Key]) -> Key | None:
    """The key that `token` is. An unknown name takes as long as a wrong secret."""
    name, _, secret = token.partition(".")
    key = keys.get(name)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    same = hmac.compare_digest(digest, key.sha256 if key else NOBODY)
    return key if same else None


def made(name: str, scopes: Iterable[Scope], rate: float | None = None) -> tuple[str, Key]:
    """A new key, and what is kept of it."""
    secret = secrets.token_urlsafe(32)
    return f"{name}.{secret}", Key(
        name=name, sha256=hashlib.sha256(secret.encode()).hexdigest(), scopes=tuple(scopes), rate=rate
    )


def write(path: Path, keys: Iterable[Key]) -> None:
    """Whole or not at all, and readable by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = KeyFile(keys=tuple(keys))
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(file.model_dump_json(indent=1, exclude_none=True) + "\n")
    os.replace(temporary, path)


def main() -> int:
    try:
        default = places.keys()
    except StoreError as error:
        print(f"serving.keys: {error}", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(prog="python -m serving.keys", description="API keys of the service")
    parser.add_argument("--file", type=Path, default=default, help=f"$REPERTOIRE_KEYS, now {default}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("ls", help="names, scopes and rates")
    add = commands.add_parser("add", help="make a key and print it, this once")
    add.add_argument("name")
    add.add_argument("scopes", nargs="+", choices=SCOPES)
    add.add_argument("--rate", type=float, help="requests/s")
    commands.add_parser("rm", help="take a key away").add_argument("name")
    asked = parser.parse_args()
    try:
        print(_done(asked), end="")
    except (OSError, ValueError) as error:
        print(f"serving.keys: {' '.join(str(error).split())[:300]}", file=sys.stderr)
        return 2
    return 0


def _done(asked: argparse.Namespace) -> str:
    keys = {key.name: key for key in read(asked.file).keys} if asked.file.exists() else {}
    if asked.command == "ls":
        return "".join(f"{key.name}\t{','.join(key.scopes)}\t{key.rate or '-'}\n" for key in keys.values())
    if asked.command == "add":
        if asked.name in keys:
            raise ValueError(f"there is a key {asked.name!r} already; rm it first, or take another name")
        token, keys[asked.name] = made(asked.name, asked.scopes, asked.rate)
        write(asked.file, keys.values())
        return f"{token}\n"
    if asked.name not in keys:
        raise ValueError(f"no key {asked.name!r}; there are: {', '.join(keys) or 'none'}")
    del keys[asked.name]
    write(asked.file, keys.values())
    return ""


if __name__ == "__main__":
    sys.exit(main())
