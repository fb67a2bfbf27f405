"""API keys and the file that holds them: names, scopes, rates, and digests only.

The secret is 256 random bits, so one SHA-256 protects it at rest as well as a slow hash protects a
password."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from skills_store.disk.durable import lock_file, sync_dir

Scope = Literal["act", "encode", "admin"]
SCOPES: tuple[Scope, ...] = ("act", "encode", "admin")
NOBODY = hashlib.sha256(secrets.token_bytes(32)).hexdigest()


class Key(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scopes: tuple[Scope, ...]
    rate: Annotated[float, Field(gt=0)] | None = (
        None  # requests/s; the service's own limit where absent
    )


class KeyFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[Key, ...] = ()

    @field_validator("keys")
    @classmethod
    def _check_names(cls, keys: tuple[Key, ...]) -> tuple[Key, ...]:
        names = [key.name for key in keys]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two keys have the name {name!r}")
        return keys


def read(path: Path) -> KeyFile:
    """Raises OSError or ValueError; the messages contain no digest."""
    try:
        return KeyFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise ValueError(
            f"{path.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from None


def match(token: str, keys: Mapping[str, Key]) -> Key | None:
    """The key that matches `token`. An unknown name takes as long as a wrong secret."""
    name, _, secret = token.partition(".")
    key = keys.get(name)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    same = hmac.compare_digest(digest, key.sha256 if key else NOBODY)
    return key if same else None


def make_key(name: str, scopes: Iterable[Scope], rate: float | None = None) -> tuple[str, Key]:
    """A new token, and the `Key` that the file stores for it."""
    secret = secrets.token_urlsafe(32)
    return f"{name}.{secret}", Key(
        name=name,
        sha256=hashlib.sha256(secret.encode()).hexdigest(),
        scopes=tuple(scopes),
        rate=rate,
    )


def write(path: Path, keys: Iterable[Key]) -> None:
    """Write the file atomically and durably, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = KeyFile(keys=tuple(keys))
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(file.model_dump_json(indent=1, exclude_none=True) + "\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_dir(path.parent)


def hold_lock(path: Path) -> AbstractContextManager[None]:
    """Keeps other programs from changing the file between a read and a write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return lock_file(path.with_name(f".{path.name}.lock"))
