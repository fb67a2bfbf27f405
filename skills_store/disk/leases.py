"""Leases: `leases/<id>.json` keeps a version from being deleted until a time.

A fleet that is being rolled out, or a run that trains on a version for days, takes one; no alias
has to be moved for it.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, ValidationError

from skills_store.disk.durable import Create, confirm, sync_dir
from skills_store.disk.records import current_user
from skills_store.errors import CorruptRecord, InvalidDuration, UnknownLease
from skills_store.frozen_model import FrozenModel
from skills_store.manifest import Digest, Name
from skills_store.version import Version

LEASE = ".json"
LONGEST = 100 * 365 * 86400  # s: beyond that, dates overflow


class Lease(FrozenModel):
    schema_version: Literal[1] = 1
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    name: Name
    number: int
    digest: Digest
    at: AwareDatetime
    until: AwareDatetime
    by: str
    why: str

    @property
    def ref(self) -> str:
        return f"{self.name}@{self.number}"

    def __str__(self) -> str:
        until = f"{self.until:%Y-%m-%d %H:%M:%S} UTC"
        return f"lease {self.id[:8]} of {self.by} until {until} ({self.why or 'no reason given'})"


@dataclass(frozen=True)
class Leases:
    """Every lease in the store, expired or not."""

    directory: Path
    create: Create

    def list_ids(self) -> tuple[str, ...]:
        try:
            entries = os.listdir(self.directory)
        except FileNotFoundError:
            return ()
        return tuple(sorted(e.removesuffix(LEASE) for e in entries if e.endswith(LEASE)))

    def read_all(self) -> tuple[Lease, ...]:
        """Every lease. Raises CorruptRecord for a damaged one: it may hold any version."""
        return tuple(lease for id in self.list_ids() if (lease := self.read(id)))

    def grant(self, version: Version, seconds: float, why: str, now: datetime) -> Lease:
        lease = Lease(
            id=uuid.uuid4().hex,
            name=version.name,
            number=version.number,
            digest=version.digest,
            at=now,
            until=now + timedelta(seconds=seconds),
            by=current_user(),
            why=why,
        )
        self.create(
            self._path(lease.id), lease.model_dump_json().encode(), f"{lease.ref} is leased"
        )
        return lease

    def find(self, start: str) -> str:
        """The only id that begins with `start`."""
        matches = [id for id in self.list_ids() if id.startswith(start)] if start else []
        if len(matches) != 1:
            raise UnknownLease(start, self.list_ids(), str(self.directory))
        return matches[0]

    def release(self, id: str) -> None:
        """Remove a lease, damaged or not."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(id))
        with confirm(f"lease {id[:8]} is released"):
            sync_dir(self.directory)

    def _path(self, id: str) -> Path:
        return self.directory / f"{id}{LEASE}"

    def read(self, id: str) -> Lease | None:
        """None if it was released after it was listed."""
        try:
            lease = Lease.model_validate_json(self._path(id).read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CorruptRecord(f"lease {id}", f"it cannot be read ({error.strerror})") from error
        except ValidationError as error:
            raise CorruptRecord(
                f"lease {id}", f"it is not one ({error.error_count()} faults)"
            ) from error
        if lease.id != id:
            raise CorruptRecord(f"lease {id}", f"it is that of {lease.id}")
        return lease


def check_span(what: str, seconds: float, least: float = 0.0) -> float:
    if not least <= seconds <= LONGEST:  # also refuses NaN
        raise InvalidDuration(f"{what} is {seconds} s; it must be {least:g} to {LONGEST} s")
    return seconds
