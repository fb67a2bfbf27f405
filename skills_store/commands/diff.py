"""`skills diff`: the differences between two versions."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from skills_store.catalog.diff import Change, compare
from skills_store.catalog.text import format_table, shorten_digest
from skills_store.catalog.value import format_value
from skills_store.commands import output
from skills_store.store import Store
from skills_store.version import Version


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="humanoid@prod")
    parser.add_argument("b", metavar="B", help="humanoid@latest")


def run(store: Store, args: argparse.Namespace) -> int:
    a = store.resolve(args.a)
    b = store.resolve(args.b)
    sections = compare(a, b)
    changes = {name: list(map(asdict, section)) for name, section in sections.items()}
    value = {"a": output.identify(a), "b": output.identify(b), "changes": changes}
    return output.print_result(args, _format_sections(a, b, sections), value)


def _format_sections(a: Version, b: Version, sections: Mapping[str, Sequence[Change]]) -> str:
    """A table for each section that differs."""
    lines = [f"{a.ref}  {shorten_digest(a.digest)}  ->  {b.ref}  {shorten_digest(b.digest)}"]
    for name, changes in sections.items():
        rows = [_format_change(change) for change in changes]
        lines += ["", format_table((name.upper(), "BEFORE", "AFTER", "DELTA"), rows)]
    return "\n".join(lines if sections else [*lines, "  the same manifest but for its number"])


def _format_change(change: Change) -> tuple[str, str, str, str]:
    before = "-" if change.how == "added" else format_value(change.before)
    after = "-" if change.how == "removed" else format_value(change.after)
    return change.key, before, after, _format_delta(change)


def _format_delta(change: Change) -> str:
    if change.delta is None:
        return "" if change.how == "changed" else change.how
    return f"up to {change.delta:.3g}" if isinstance(change.after, list) else f"{change.delta:+.4g}"
