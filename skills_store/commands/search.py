"""`skills search`: versions by what they are and how they measured."""

from __future__ import annotations

import argparse

from skills_store.catalog.search import Query, parse_condition, search
from skills_store.commands import output
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", choices=("skills", "controller"))
    parser.add_argument("--character", metavar="NAME")
    parser.add_argument("--task", metavar="NAME", help="of a controller")
    parser.add_argument(
        "--where", action="append", default=[], metavar="CONDITION", help="survival>=0.9; all must hold"
    )


def run(store: Store, args: argparse.Namespace) -> int:
    conditions = tuple(map(parse_condition, args.where))
    hits, faults = search(store, Query(args.kind, args.character, args.task, conditions))
    rows = output.describe_rows(store, [hit.summary for hit in hits])
    rows = [row | {"metrics": hit.metrics} for row, hit in zip(rows, hits, strict=True)]
    metrics = list(dict.fromkeys(each.metric for each in conditions))
    return output.print_listing(args, rows, faults, "no version matches", metrics)
