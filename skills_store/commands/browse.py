"""Commands that look and change nothing: ls, show, search, diff, log, verify, schema."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict

from skills_store.catalog import page
from skills_store.catalog.diff import compare
from skills_store.catalog.search import Query, parse_condition, search
from skills_store.commands import output
from skills_store.manifest import Manifest
from skills_store.store import Store


def ls(store: Store, args: argparse.Namespace) -> int:
    rows, faults = [], []
    for name in [args.name] if args.name else store.names():
        summaries, broken = store.summaries(name)
        pointing, protected = output.list_aliases(store, name), store.list_protected(name)
        faults += broken
        rows += [page.describe_summary(each, pointing.get(each.number, ()), protected) for each in reversed(summaries)]
    return output.print_listing(args, rows, faults, f"no skills in {store.where}")


def find(store: Store, args: argparse.Namespace) -> int:
    query = Query(args.kind, args.character, args.task, tuple(map(parse_condition, args.where)))
    hits, faults = search(store, query)
    names = {hit.summary.name for hit in hits}
    pointing = {name: output.list_aliases(store, name) for name in names}
    protected = {name: store.list_protected(name) for name in names}
    rows = [
        page.describe_summary(
            hit.summary, pointing[hit.summary.name].get(hit.summary.number, ()), protected[hit.summary.name]
        )
        | {"metrics": hit.metrics}
        for hit in hits
    ]
    metrics = list(dict.fromkeys(each.metric for each in query.where))
    return output.print_listing(args, rows, faults, "no version matches", metrics)


def show(store: Store, args: argparse.Namespace) -> int:
    version = store.resolve(args.ref)
    aliases = output.list_aliases(store, version.name).get(version.number, ())
    shown = page.describe_version(version, aliases, store.list_protected(version.name))
    return output.print_result(args, page.format_page(shown), shown)


def diff(store: Store, args: argparse.Namespace) -> int:
    a, b = store.resolve(args.a), store.resolve(args.b)
    sections = compare(a, b)
    told = {name: [asdict(change) for change in found] for name, found in sections.items()}
    return output.print_result(
        args, output.format_changes(a, b, sections), {"a": output.identify(a), "b": output.identify(b), "changes": told}
    )


def log(store: Store, args: argparse.Namespace) -> int:
    events = store.log(args.name)
    return output.print_result(args, output.format_history(events), [output.describe_event(event) for event in events])


def verify(store: Store, args: argparse.Namespace) -> int:
    faults = store.verify(args.ref)
    if args.json:
        print(output.encode_json({"faults": [vars(f) for f in faults]}))
    else:
        output.print_faults(faults)
        print(f"{len(faults)} faults" if faults else f"{args.ref or store.where}: every byte is as published")
    return 1 if faults else 0


def schema(_: Store, args: argparse.Namespace) -> int:
    print(output.encode_json(Manifest.model_json_schema()))
    return 0


def describe(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add each command and its arguments; `command` makes its parser."""
    listing = command("ls", "versions, newest first")
    listing.add_argument("name", nargs="?", metavar="NAME")
    listing.set_defaults(run=ls)
    one = command("show", "one version: graphs, card, lineage")
    one.add_argument("ref", metavar="REF", help="humanoid@latest")
    one.set_defaults(run=show)
    such = command("search", "versions by what they are and how they measured")
    such.add_argument("--kind", choices=("skills", "controller"))
    such.add_argument("--character", metavar="NAME")
    such.add_argument("--task", metavar="NAME", help="of a controller")
    such.add_argument("--where", action="append", default=[], metavar="CONDITION", help="survival>=0.9; all must hold")
    such.set_defaults(run=find)
    pair = command("diff", "what sets two versions apart: graphs, body, card, config, clips, files")
    pair.add_argument("a", metavar="A", help="humanoid@prod")
    pair.add_argument("b", metavar="B", help="humanoid@latest")
    pair.set_defaults(run=diff)
    past = command("log", "every move of every alias, every rollback and deletion")
    past.add_argument("name", metavar="NAME")
    past.set_defaults(run=log)
    check = command("verify", "read and hash everything")
    check.add_argument("ref", nargs="?", metavar="REF")
    check.set_defaults(run=verify)
    command("schema", "the JSON Schema of manifests").set_defaults(run=schema)
