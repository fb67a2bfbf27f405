"""Commands that change what a store holds or means: alias, rollback, protect, delete, lease, release, gc."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from skills_store.catalog.text import format_table, shorten_digest
from skills_store.commands import duration, output
from skills_store.commands.arguments import number, words
from skills_store.errors import StoreError
from skills_store.store import Store, Version


def alias(store: Store, args: argparse.Namespace) -> int:
    if args.number is not None:
        version = store.alias(args.name, args.alias, args.number, args.why, force=args.force)
        return _moved(args, version, "")
    if args.alias is not None:
        raise StoreError(f"alias {args.name} {args.alias} needs a version NUMBER to point at")
    names = [args.name] if args.name else store.names()
    found = {name: {"latest": store.latest(name), **store.aliases(name)} for name in names}
    kept = {name: store.list_protected(name) for name in names}
    rows = [
        (name, key, number, "protected" if key in kept[name] else "")
        for name, each in found.items()
        for key, number in each.items()
    ]
    # No skill can have this name, so the key cannot clash.
    told = found | {"@protected": {name: sorted(aliases) for name, aliases in kept.items() if aliases}}
    return output.print_result(args, format_table(("SKILL", "ALIAS", "VERSION", ""), rows), told)


def rollback(store: Store, args: argparse.Namespace) -> int:
    return _moved(args, store.rollback(args.name, args.alias, args.why), "  (rollback)")


def protect(store: Store, args: argparse.Namespace) -> int:
    version = store.protect(args.name, args.alias, args.why, on=not args.off)
    return _moved(args, version, "  (protected no more)" if args.off else "  (protected)")


def delete(store: Store, args: argparse.Namespace) -> int:
    stone = store.delete(args.ref, args.why)
    text = f"{stone.name}@{stone.number} is deleted; gc frees its files when its grace is over"
    return output.print_result(args, text, stone.model_dump(mode="json"))


def lease(store: Store, args: argparse.Namespace) -> int:
    taken = [store.lease(args.ref, duration.parse(args.span), args.why)] if args.ref else store.leases()
    return output.print_result(args, output.format_leases(taken), [each.model_dump(mode="json") for each in taken])


def release(store: Store, args: argparse.Namespace) -> int:
    store.release(args.lease)
    return output.print_result(args, f"lease {args.lease} is released", {"lease": args.lease, "released": True})


def gc(store: Store, args: argparse.Namespace) -> int:
    found = store.gc(duration.parse(args.grace), dry_run=args.dry_run)
    orphans = [{"path": str(orphan.path), "bytes": orphan.bytes} for orphan in found.orphans]
    told = {"orphans": orphans, "bytes": found.bytes, "needed": found.needed, "dry_run": args.dry_run}
    return output.print_result(args, output.format_garbage(found, args.dry_run), told)


def describe(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add each command and its arguments; `command` makes its parser."""
    move = command("alias", "point an alias at a version; without NUMBER, list the aliases")
    move.add_argument("name", nargs="?", metavar="NAME")
    move.add_argument("alias", nargs="?", metavar="ALIAS")
    move.add_argument("number", nargs="?", type=number, metavar="NUMBER")
    move.add_argument("--why", type=words, default="", help="kept in the log")
    move.add_argument(
        "--force", action="store_true", help="move a protected alias even to a version whose card is worse"
    )
    move.set_defaults(run=alias)
    undo = command("rollback", "point an alias back at what it meant before; again, and it goes further back")
    undo.add_argument("name", metavar="NAME")
    undo.add_argument("alias", metavar="ALIAS")
    undo.add_argument("--why", type=words, default="", help="kept in the log")
    undo.set_defaults(run=rollback)
    fix = command(
        "protect", "refuse to move this alias to a version whose card is worse; prod is protected from the start"
    )
    fix.add_argument("name", metavar="NAME")
    fix.add_argument("alias", metavar="ALIAS")
    fix.add_argument("--off", action="store_true", help="allow every move again")
    fix.add_argument("--why", type=words, default="", help="kept in the log")
    fix.set_defaults(run=protect)
    away = command("delete", "take a version away for good; refused while anything relies on it")
    away.add_argument("ref", metavar="REF", help="humanoid@7")
    away.add_argument("--why", type=words, required=True, help="kept in the log")
    away.set_defaults(run=delete)
    hold = command("lease", "keep a version from being deleted for a while; without REF, list the leases")
    hold.add_argument("ref", nargs="?", metavar="REF")
    hold.add_argument("--for", dest="span", default="1h", metavar="SPAN", help="90s, 15m, 1h, 7d; default 1h")
    hold.add_argument("--why", type=words, default="", help="shown when a delete is refused")
    hold.set_defaults(run=lease)
    end = command("release", "end a lease")
    end.add_argument("lease", metavar="LEASE", help="its id, or how it begins")
    end.set_defaults(run=release)
    tidy = command("gc", "free the files that nothing has needed for a while")
    tidy.add_argument("--grace", default="1h", metavar="SPAN", help="what is younger stays; default 1h")
    tidy.add_argument("--dry-run", action="store_true", help="only say what would be freed")
    tidy.set_defaults(run=gc)


def _moved(args: argparse.Namespace, version: Version, how: str) -> int:
    moved = {"name": args.name, "alias": args.alias, "version": version.number, "digest": version.digest}
    text = f"{args.name}@{args.alias} -> {version.ref}  {shorten_digest(version.digest)}{how}"
    return output.print_result(args, text, moved)
