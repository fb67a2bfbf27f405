"""`skills delete`: delete a version for good."""

from __future__ import annotations

import argparse

from skills_store.commands import output
from skills_store.commands.arguments import parse_words
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="humanoid@7")
    parser.add_argument("--why", type=parse_words, required=True, help="kept in the log")


def run(store: Store, args: argparse.Namespace) -> int:
    tombstone = store.delete(args.ref, args.why)
    text = (
        f"{tombstone.name}@{tombstone.number} is deleted; gc frees its files when its grace is over"
    )
    return output.print_result(args, text, tombstone.model_dump(mode="json"))
