"""Commands that look and change nothing: ls, show, search, diff, log, verify, schema."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict

from skills_store import report
from skills_store.catalogue.diff import compare
from skills_store.catalogue.search import Query, condition, search
from skills_store.manifest import Manifest
from skills_store.store import Store
from skills_store.version import Fault


def ls(store: Store, args: argparse.Namespace) -> int:
    rows, faults = [], []
    for name in [args.name] if args.name else store.names():
        summaries, broken = store.summaries(name)
        pointing, protected = report.pointing(store, name), store.protected(name)
        faults += broken
        rows += [report.row(each, pointing.get(each.number, ()), protected) for each in reversed(summaries)]
    return _listed(args, rows, faults, f"no skills in {store.where}")


def find(store: Store, args: argparse.Namespace) -> int:
    query = Query(args.kind, args.character, args.task, tuple(map(condition, args.where)))
    hits, faults = search(store, query)
    names = {hit.summary.name for hit in hits}
    pointing = {name: report.pointing(store, name) for name in names}
    protected = {name: store.protected(name) for name in names}
    rows = [
        report.row(hit.summary, pointing[hit.summary.name].get(hit.summary.number, ()), protected[hit.summary.name])
        | {"metrics": hit.metrics}
        for hit in hits
    ]
    metrics = list(dict.fromkeys(each.metric for each in query.where))
    return _listed(args, rows, faults, "no version is such", metrics)


def show(store: Store, args: argparse.Namespace) -> int:
    version = store.resolve(args.ref)
    aliases = report.pointing(store, version.name).get(version.number, ())
    shown = report.detail(version, aliases, store.protected(version.name))
    return report.say(args, report.page(shown), shown)


def diff(store: Store, args: argparse.Namespace) -> int:
    a, b = store.resolve(args.a), store.resolve(args.b)
    sections = compare(a, b)
    told = {name: [asdict(change) for change in found] for name, found in sections.items()}
    return report.say(
        args, report.comparison(a, b, sections), {"a": report.named(a), "b": report.named(b), "changes": told}
    )


def log(store: Store, args: argparse.Namespace) -> int:
    events = store.log(args.name)
    return report.say(args, report.history(events), [report.event(event) for event in events])


def verify(store: Store, args: argparse.Namespace) -> int:
    faults = store.verify(args.ref)
    if args.json:
        print(report.as_json({"faults": [vars(f) for f in faults]}))
    else:
        _warn(faults)
        print(f"{len(faults)} faults" if faults else f"{args.ref or store.where}: every byte is as published")
    return 1 if faults else 0


def schema(_: Store, args: argparse.Namespace) -> int:
    print(report.as_json(Manifest.model_json_schema()))
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


def _listed(
    args: argparse.Namespace, rows: list[dict], faults: Sequence[Fault], nothing: str, metrics: Sequence[str] = ()
) -> int:
    if args.json:
        print(report.as_json({"versions": rows, "faults": [vars(f) for f in faults]}))
        return 0
    if rows:
        print(report.listing(rows, metrics))
    elif not faults:
        print(nothing, file=sys.stderr)
    _warn(faults)
    return 0


def _warn(faults: Sequence[Fault]) -> None:
    for found in faults:
        print(f"skills: {found.message}", file=sys.stderr)
