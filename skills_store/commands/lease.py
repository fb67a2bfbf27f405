"""`skills lease`: keep a version from being deleted for a while, or list the leases."""

from __future__ import annotations

import argparse

from skills_store.catalog.text import format_table
from skills_store.commands import output
from skills_store.commands.arguments import parse_words
from skills_store.commands.duration import parse_duration
from skills_store.disk.leases import Lease
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="?", metavar="REF")
    parser.add_argument(
        "--for", dest="span", default="1h", metavar="SPAN", help="90s, 15m, 1h, 7d; default 1h"
    )
    parser.add_argument(
        "--why", type=parse_words, default="", help="shown when a delete is refused"
    )


def run(store: Store, args: argparse.Namespace) -> int:
    if args.ref:
        leases = (store.lease(args.ref, parse_duration(args.span), args.why),)
    else:
        leases = store.leases()
    text = format_table(
        ("LEASE", "VERSION", "UNTIL (UTC)", "BY", "WHY"), [_format_lease(lease) for lease in leases]
    )
    return output.print_result(args, text, [lease.model_dump(mode="json") for lease in leases])


def _format_lease(lease: Lease) -> tuple[str, ...]:
    return lease.id[:8], lease.ref, f"{lease.until:%Y-%m-%d %H:%M:%S}", lease.by, lease.why or "-"
