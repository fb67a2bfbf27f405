"""What commands print: aligned text for people, plain objects for programs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from skills_store.catalog.page import describe_summary
from skills_store.catalog.text import escape, format_size, format_table, shorten_digest
from skills_store.store import Store
from skills_store.version import Fault, Summary, Version

MATCHES_SHOWN = 3  # of a search's word, in a row


def encode_json(value: Any) -> str:
    return json.dumps(value, indent=2)  # ASCII: no encoding of a terminal or pipe can break it


def print_result(args: argparse.Namespace, text: str, value: Any) -> int:
    """`value` with --json, else `text`. Returns exit status 0."""
    print(encode_json(value) if args.json else "\n".join(map(escape, text.split("\n"))))
    return 0


def print_listing(
    args: argparse.Namespace,
    rows: list[dict[str, Any]],
    faults: Sequence[Fault],
    nothing: str,
    metrics: Sequence[str] = (),
) -> int:
    """Versions as a table, or `nothing`; `metrics` are extra columns, from each row's "metrics"."""
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
    """The aliases of each version of a skill, by number, with `latest`."""
    names: dict[int, list[str]] = {store.latest(name): ["latest"]}
    for alias, number in store.aliases(name).items():
        names.setdefault(number, []).append(alias)
    return names


def describe_rows(store: Store, summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Rows for `print_listing`, in the order given."""
    names = {summary.name for summary in summaries}
    aliases = {name: list_aliases(store, name) for name in names}
    protected = {name: store.list_protected(name) for name in names}
    bundled = {name: store.list_bundled(name) for name in names}
    rows = []
    for summary in summaries:
        version_aliases = aliases[summary.name].get(summary.number, ())
        row = describe_summary(summary, version_aliases, protected[summary.name])
        rows.append(row | {"source": name_source(summary.number in bundled[summary.name])})
    return rows


def name_source(bundled: bool) -> str:
    """`bundled` for a version that comes with the project, else `store`."""
    return "bundled" if bundled else "store"


def print_move(args: argparse.Namespace, version: Version, note: str = "") -> int:
    """Where the alias `args.alias` points now."""
    value = {
        "name": args.name,
        "alias": args.alias,
        "version": version.number,
        "digest": version.digest,
    }
    moved = f"{args.name}@{args.alias} -> {version.ref}  {shorten_digest(version.digest)}"
    return print_result(args, moved + note, value)


def _format_listing(rows: Sequence[dict[str, Any]], metrics: Sequence[str]) -> str:
    header = (
        "SKILL",
        "VERSION",
        "KIND",
        "ALIASES",
        "CREATED",
        "DIGEST",
        "SIZE",
        "SOURCE",
        "LICENCE",
    )
    columns = (*header, *map(str.upper, metrics))
    if not any(row.get("matches") for row in rows):
        return format_table(columns, [_format_row(row, metrics) for row in rows])
    cells = [(*_format_row(row, metrics), _format_matches(row["matches"])) for row in rows]
    return format_table((*columns, "FOUND IN"), cells)


def _format_matches(matches: Sequence[str]) -> str:
    more = f" and {len(matches) - MATCHES_SHOWN} more" if len(matches) > MATCHES_SHOWN else ""
    return ", ".join(matches[:MATCHES_SHOWN]) + more


def _format_row(row: dict[str, Any], metrics: Sequence[str]) -> tuple[object, ...]:
    return (
        row["name"],
        row["version"],
        row["kind"],
        ",".join(row["aliases"]) or "-",
        row["created"][:16].replace("T", " "),
        shorten_digest(row["digest"]),
        format_size(row["bytes"]),
        row["source"],
        row["licence"],
        *(f"{row['metrics'][metric]:.4g}" for metric in metrics),
    )
