"""What commands print: aligned text for people, plain objects for programs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from skills_store.catalog.diff import Change
from skills_store.catalog.text import escape, format_size, format_table, shorten_digest
from skills_store.catalog.value import format_value
from skills_store.disk.aliases import AliasMove
from skills_store.disk.garbage import Garbage
from skills_store.disk.leases import Lease
from skills_store.disk.tombstones import Tombstone
from skills_store.store import Store
from skills_store.version import Fault, Version


def encode_json(value: Any) -> str:
    return json.dumps(value, indent=2)  # ASCII: no encoding of a terminal or pipe can break it


def print_result(args: argparse.Namespace, text: str, value: Any) -> int:
    """`value` with --json, else `text`. Returns the exit status of a command that was carried out."""
    print(encode_json(value) if args.json else "\n".join(map(escape, text.split("\n"))))
    return 0


def print_listing(
    args: argparse.Namespace,
    rows: list[dict[str, Any]],
    faults: Sequence[Fault],
    nothing: str,
    metrics: Sequence[str] = (),
) -> int:
    """Versions as a table, or `nothing`; `metrics` are columns of their own, out of each row's "metrics"."""
    if args.json:
        print(encode_json({"versions": rows, "faults": [vars(fault) for fault in faults]}))
        return 0
    if rows:
        print(_format_listing(rows, metrics))
    elif not faults:
        print(nothing, file=sys.stderr)
    print_faults(faults)
    return 0


def print_faults(faults: Sequence[Fault]) -> None:
    for fault in faults:
        print(f"skills: {escape(fault.message)}", file=sys.stderr)


def identify(version: Version) -> dict[str, Any]:
    return {"ref": version.ref, "digest": version.digest}


def list_aliases(store: Store, name: str) -> dict[int, list[str]]:
    """The names that each version of a skill has now, by number."""
    names: dict[int, list[str]] = {store.latest(name): ["latest"]}
    for alias, number in store.aliases(name).items():
        names.setdefault(number, []).append(alias)
    return names


def _format_listing(rows: Sequence[dict[str, Any]], metrics: Sequence[str]) -> str:
    header = ("SKILL", "VERSION", "KIND", "ALIASES", "CREATED", "DIGEST", "SIZE", "LICENCE")
    columns = (*header, *map(str.upper, metrics))
    return format_table(columns, [_format_row(row, metrics) for row in rows])


def _format_row(row: dict[str, Any], metrics: Sequence[str]) -> tuple[object, ...]:
    return (
        row["name"],
        row["version"],
        row["kind"],
        ",".join(row["aliases"]) or "-",
        row["created"][:16].replace("T", " "),
        shorten_digest(row["digest"]),
        format_size(row["bytes"]),
        row["licence"],
        *(f"{row['metrics'][metric]:.4g}" for metric in metrics),
    )


def describe_event(event: AliasMove | Tombstone) -> dict[str, Any]:
    """One entry of `log --json`."""
    return {"event": _name_event(event), **event.model_dump(mode="json")}


def format_history(events: Sequence[AliasMove | Tombstone]) -> str:
    header = ("WHEN (UTC)", "ALIAS", "FROM", "TO", "DIGEST", "BY", "WHY")
    return format_table(header, [_format_event(event) for event in events])


def format_leases(granted: Sequence[Lease]) -> str:
    rows = [(x.id[:8], x.ref, f"{x.until:%Y-%m-%d %H:%M:%S}", x.by, x.why or "-") for x in granted]
    return format_table(("LEASE", "VERSION", "UNTIL (UTC)", "BY", "WHY"), rows)


def format_garbage(found: Garbage, dry_run: bool) -> str:
    lines = [f"{orphan.path}  {format_size(orphan.bytes)}" for orphan in found.orphans]
    done = "would be freed" if dry_run else "freed"
    total = f"{len(found.orphans)} files, {format_size(found.bytes)} {done}"
    return "\n".join([*lines, f"{total}; {found.needed} blobs are needed"])


def format_changes(a: Version, b: Version, sections: Mapping[str, Sequence[Change]]) -> str:
    """`diff`: a table for each section that differs."""
    lines = [f"{a.ref}  {shorten_digest(a.digest)}  ->  {b.ref}  {shorten_digest(b.digest)}"]
    for name, changes in sections.items():
        rows = [_format_change(change) for change in changes]
        lines += ["", format_table((name.upper(), "BEFORE", "AFTER", "DELTA"), rows)]
    return "\n".join(lines if sections else [*lines, "  the same manifest but for its number"])


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


def _format_change(change: Change) -> tuple[str, str, str, str]:
    before = "-" if change.how == "added" else format_value(change.before)
    after = "-" if change.how == "removed" else format_value(change.after)
    return change.key, before, after, _format_delta(change)


def _format_delta(change: Change) -> str:
    if change.delta is None:
        return "" if change.how == "changed" else change.how
    return f"up to {change.delta:.3g}" if isinstance(change.after, list) else f"{change.delta:+.4g}"
