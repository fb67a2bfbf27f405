"""`skills show`: one version with its graphs, card and lineage."""

from __future__ import annotations

import argparse

from skills_store.catalog.page import describe_version, format_page
from skills_store.commands import output
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="humanoid@latest")


def run(store: Store, args: argparse.Namespace) -> int:
    version = store.resolve(args.ref)
    aliases = output.list_aliases(store, version.name).get(version.number, ())
    shown = describe_version(version, aliases, store.list_protected(version.name))
    shown["source"] = output.name_source(store.is_bundled(version))
    return output.print_result(args, format_page(shown), shown)
