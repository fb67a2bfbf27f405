"""`skills log`: every move of every alias, every rollback and deletion."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from skills_store.catalog.text import format_table, shorten_digest
from skills_store.commands import output
from skills_store.disk.alias_move import AliasMove
from skills_store.disk.tombstones import Tombstone
from skills_store.store import Store

HEADER = ("WHEN (UTC)", "ALIAS", "FROM", "TO", "DIGEST", "BY", "WHY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")


def run(store: Store, args: argparse.Namespace) -> int:
    events = store.log(args.name)
    text = format_table(HEADER, [_format_event(event) for event in events])
    return output.print_result(args, text, _describe_events(events))


def _describe_events(events: Sequence[AliasMove | Tombstone]) -> list[dict[str, Any]]:
    return [{"event": _name_event(event), **event.model_dump(mode="json")} for event in events]


def _name_event(event: AliasMove | Tombstone) -> str:
    if isinstance(event, Tombstone):
        return "delete"
    if event.switches:
        return "protect" if event.protected else "unprotect"
    return "rollback" if event.undoes else "move"


def _format_event(event: AliasMove | Tombstone) -> tuple[object, ...]:
    when = f"{event.at:%Y-%m-%d %H:%M:%S}"
    digest = shorten_digest(event.digest or "-")
    if isinstance(event, Tombstone):
        return when, "-", event.number, "deleted", digest, event.by, event.why
    kind = "forced" if event.forced else _name_event(event)
    notes = [note for note in ("" if kind == "move" else kind, event.why) if note]
    previous = event.previous or "-"
    return when, event.alias, previous, event.number, digest, event.by, ": ".join(notes) or "-"
