"""`skills search`: versions by a word, by properties, and by card metrics."""

from __future__ import annotations

import argparse

from skills_store.catalog.search import Query, parse_condition, search
from skills_store.commands import output
from skills_store.commands.arguments import parse_word
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "word", nargs="?", type=parse_word, metavar="WORD", help="part of a name, a task or a clip"
    )
    parser.add_argument("--kind", choices=("skills", "controller"))
    parser.add_argument("--character", metavar="NAME")
    parser.add_argument("--task", metavar="NAME", help="of a controller")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="survival>=0.9; all must hold",
    )


def run(store: Store, args: argparse.Namespace) -> int:
    conditions = tuple(map(parse_condition, args.where))
    query = Query(args.word, args.kind, args.character, args.task, conditions)
    hits, faults = search(store, query)
    rows = output.describe_rows(store, [hit.summary for hit in hits])
    for row, hit in zip(rows, hits, strict=True):
        row["metrics"] = hit.metrics
        row["matches"] = list(hit.matches)
    metrics = list(dict.fromkeys(each.metric for each in conditions))
    return output.print_listing(args, rows, faults, "no version matches", metrics)
