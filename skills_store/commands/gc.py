"""`skills gc`: free the files that nothing has needed for a while."""

from __future__ import annotations

import argparse

from skills_store.catalog.text import format_size
from skills_store.commands import output
from skills_store.commands.duration import parse_duration
from skills_store.disk.garbage import Garbage
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grace", default="1h", metavar="SPAN", help="younger files stay; default 1h"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be freed")


def run(store: Store, args: argparse.Namespace) -> int:
    garbage = store.gc(parse_duration(args.grace), dry_run=args.dry_run)
    orphans = [{"path": str(orphan.path), "bytes": orphan.bytes} for orphan in garbage.orphans]
    value = {
        "orphans": orphans,
        "bytes": garbage.bytes,
        "needed": garbage.needed,
        "dry_run": args.dry_run,
    }
    return output.print_result(args, _format_garbage(garbage, args.dry_run), value)


def _format_garbage(garbage: Garbage, dry_run: bool) -> str:
    lines = [f"{orphan.path}  {format_size(orphan.bytes)}" for orphan in garbage.orphans]
    done = "would be freed" if dry_run else "freed"
    total = f"{len(garbage.orphans)} files, {format_size(garbage.bytes)} {done}"
    return "\n".join([*lines, f"{total}; {garbage.needed} blobs are needed"])
