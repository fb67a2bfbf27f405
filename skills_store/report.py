"""How the store looks from a terminal: aligned text for people, plain objects for programs. Reads, never writes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from skills_store.catalogue.diff import Change
from skills_store.disk.aliases import AliasMove
from skills_store.disk.garbage import Garbage
from skills_store.disk.leases import Lease
from skills_store.disk.tombstones import Tombstone
from skills_store.store import Store
from skills_store.text import plain
from skills_store.version import Summary, Version, summarise


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2)  # ASCII: what no encoding of a terminal or pipe can break


def say(args: argparse.Namespace, text: str, value: Any) -> int:
    """The same to whoever asked: a person, or a program. The exit status of what was done."""
    print(as_json(value) if args.json else "\n".join(map(plain, text.split("\n"))))
    return 0


def named(version: Version) -> dict[str, Any]:
    return {"ref": version.ref, "digest": version.digest}


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cells = [list(header), *([plain(str(cell)) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def short(digest: str) -> str:
    return digest[: len("sha256:") + 12]


def row(summary: Summary, aliases: Sequence[str], protected: Collection[str] = ()) -> dict[str, Any]:
    """One row of `ls --json`: `aliases` mean this version now, `protected` are those of its skill that are so."""
    return {
        "ref": summary.ref,
        "name": summary.name,
        "version": summary.number,
        "digest": summary.digest,
        "created": summary.created.isoformat(),
        "kind": summary.kind,
        "character": summary.character,
        "task": summary.task,
        "licence": summary.licence,
        "aliases": list(aliases),
        "protected": [alias for alias in aliases if alias in protected],
        "bytes": summary.bytes,
    }


def detail(version: Version, aliases: Sequence[str] = (), protected: Collection[str] = ()) -> dict[str, Any]:
    """`show --json`: the manifest, without the body's geometry, which is no reading for a terminal."""
    manifest = version.manifest.model_dump(mode="json", exclude={"character": {"skeleton", "mjcf"}})
    return row(summarise(version), aliases, protected) | {key: manifest[key] for key in manifest if key != "name"}


def pointing(store: Store, name: str) -> dict[int, list[str]]:
    """The names that mean each version of a skill now, by number."""
    names: dict[int, list[str]] = {store.latest(name): ["latest"]}
    for alias, number in store.aliases(name).items():
        names.setdefault(number, []).append(alias)
    return names


def listing(rows: Sequence[dict[str, Any]], metrics: Sequence[str] = ()) -> str:
    """`metrics` are columns of their own, out of each row's "metrics"."""
    header = ("SKILL", "VERSION", "KIND", "ALIASES", "CREATED", "DIGEST", "SIZE", "LICENCE", *map(str.upper, metrics))
    return table(
        header,
        [
            (
                row["name"],
                row["version"],
                row["kind"],
                ",".join(row["aliases"]) or "-",
                row["created"][:16].replace("T", " "),
                short(row["digest"]),
                _size(row["bytes"]),
                row["licence"],
                *(f"{row['metrics'][metric]:.4g}" for metric in metrics),
            )
            for row in rows
        ],
    )


def page(shown: dict[str, Any]) -> str:
    """`show`: the facts first, then graphs, card and lineage."""
    lines = [f"{shown['ref']}  {shown['kind']}  {shown['digest']}"]
    lines += [f"  aliases    {_aliases(shown) or '-'}", f"  created    {shown['created']}"]
    lines += [f"  licence    {shown['licence']}", f"  character  {_character(shown['character'])}"]
    lines += [
        f"  latent     {shown['latent']['dim']} on the unit sphere, {len(shown['latent']['clips'])} clips embedded"
    ]
    if task := shown["task"]:
        parent = task["parent"]
        lines += [f"  task       {task['name']}, a decision every {task['llc_steps']} control steps"]
        lines += [f"  parent     {parent['name']}@{parent['version']}  {parent['digest']}"]
    lines += ["", "graphs"]
    lines += [f"  {name}: {_signature(graph)}" for name, graph in shown["graphs"].items()]
    lines += ["", "files"]
    lines += [f"  {file}  {_size(blob['size'])}  {short(blob['digest'])}" for file, blob in shown["files"].items()]
    lines += ["", "card", *(_tree(shown["card"]) or ["  -"])]
    lineage = shown["lineage"]
    lines += ["", "lineage", f"  clips      {', '.join(clip['name'] for clip in lineage['clips']) or '-'}"]
    lines += [f"  seed       {lineage['seed']}", f"  commit     {_commit(lineage)}"]
    return "\n".join([*lines, f"  hardware   {lineage['hardware'] or '-'}"])


def event(event: AliasMove | Tombstone) -> dict[str, Any]:
    """One entry of `log --json`."""
    return {"event": _kind(event), **event.model_dump(mode="json")}


def _kind(event: AliasMove | Tombstone) -> str:
    if isinstance(event, Tombstone):
        return "delete"
    if event.switches:
        return "protect" if event.protected else "unprotect"
    return "rollback" if event.undoes else "move"


def history(events: Sequence[AliasMove | Tombstone]) -> str:
    return table(("WHEN (UTC)", "ALIAS", "FROM", "TO", "DIGEST", "BY", "WHY"), [_event(e) for e in events])


def leases(granted: Sequence[Lease]) -> str:
    rows = [(x.id[:8], x.ref, f"{x.until:%Y-%m-%d %H:%M:%S}", x.by, x.why or "-") for x in granted]
    return table(("LEASE", "VERSION", "UNTIL (UTC)", "BY", "WHY"), rows)


def swept(found: Garbage, dry_run: bool) -> str:
    total = f"{len(found.strays)} files, {_size(found.bytes)}"
    lines = [f"{stray.path}  {_size(stray.bytes)}" for stray in found.strays]
    return "\n".join([*lines, f"{total} {'would be freed' if dry_run else 'freed'}; {found.needed} blobs are needed"])


def comparison(a: Version, b: Version, sections: Mapping[str, Sequence[Change]]) -> str:
    """`diff`: a table for each section that has something to say."""
    lines = [f"{a.ref}  {short(a.digest)}  ->  {b.ref}  {short(b.digest)}"]
    for name, found in sections.items():
        rows = [(c.key, _side(c, "added", c.before), _side(c, "removed", c.after), _delta(c)) for c in found]
        lines += ["", table((name.upper(), "BEFORE", "AFTER", "DELTA"), rows)]
    return "\n".join(lines if sections else [*lines, "  the same manifest but for its number"])


def _event(event: AliasMove | Tombstone) -> tuple[object, ...]:
    when, digest = f"{event.at:%Y-%m-%d %H:%M:%S}", short(event.digest or "-")
    if isinstance(event, Tombstone):
        return when, "-", event.number, "deleted", digest, event.by, event.why
    said = ["forced"] if event.forced else [_kind(event)] if _kind(event) != "move" else []
    said += [event.why] if event.why else []
    return when, event.alias, event.previous or "-", event.number, digest, event.by, ": ".join(said) or "-"


def _side(change: Change, absent: str, value: Any) -> str:
    return "-" if change.how == absent else _brief(value)


def _brief(value: Any) -> str:
    match value:
        case float():
            return f"{value:.4g}"
        case list() if len(value) > 4:
            return f"{len(value)} values"
        case {"digest": str(digest), "size": int(size)}:
            return f"{_size(size)} {short(digest)}"
        case {"digest": str(digest), "source": source}:
            return f"{short(digest)} {source}"
        case str() if len(value) > 40:
            return f"{value[:30]}... ({len(value)} characters)"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _delta(change: Change) -> str:
    if change.delta is None:
        return change.how if change.how != "changed" else ""
    return f"up to {change.delta:.3g}" if isinstance(change.after, list) else f"{change.delta:+.4g}"


def _aliases(shown: dict[str, Any]) -> str:
    return ", ".join(f"{each} (protected)" if each in shown["protected"] else each for each in shown["aliases"])


def _character(character: dict[str, Any]) -> str:
    return f"{character['name']}, {len(character['joints'])} joints, {1 / character['control_dt']:.3g} Hz"


def _signature(graph: dict[str, Any]) -> str:
    def side(tensors: list[dict[str, Any]]) -> str:
        return ", ".join(f"{t['name']}({', '.join(map(str, t['shape']))})" for t in tensors)

    return f"{side(graph['inputs'])} -> {side(graph['outputs'])}  opset {graph['opset']}"


def _commit(lineage: dict[str, Any]) -> str:
    commit = lineage["git_commit"] or "-"
    return f"{commit} (with uncommitted changes)" if lineage["git_dirty"] else commit


def _tree(values: dict[str, Any], depth: int = 1) -> list[str]:
    lines = []
    for key, value in values.items():
        indent = "  " * depth
        if isinstance(value, dict):
            lines += [indent + plain(key), *_tree(value, depth + 1)]
        else:
            lines.append(indent + plain(f"{key}: {_brief(value) if isinstance(value, float | list) else value}"))
    return lines


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
