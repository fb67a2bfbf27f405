"""`skills pull`: copy a version, and its parent, from another store."""

from __future__ import annotations

import argparse

from skills_store.commands.arguments import parse_store
from skills_store.commands.push import copy_and_print
from skills_store.disk import store_folder
from skills_store.errors import NotAStore, UnknownSkill
from skills_store.open import open_store
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="humanoid@7")
    parser.add_argument("--from", type=parse_store, required=True, metavar="STORE", dest="origin")


def run(store: Store, args: argparse.Namespace) -> int:
    origin = open_store(args.origin, bundled=False)
    try:
        return copy_and_print(args, origin, store)
    except UnknownSkill:
        if store_folder.is_store(origin.root):
            raise
        raise NotAStore(origin.location, "nothing was ever published there") from None
