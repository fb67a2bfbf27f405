"""How the store looks from a terminal: aligned text for people, plain objects for programs. Reads, never writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skills_store.aliases import AliasMove
from skills_store.store import Store
from skills_store.version import Version


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def short(digest: str) -> str:
    return digest[: len("sha256:") + 12]


def summary(version: Version, pointing: Sequence[str]) -> dict[str, Any]:
    """One row of `ls --json`."""
    manifest = version.manifest
    return {
        "ref": version.ref,
        "name": version.name,
        "version": version.number,
        "digest": version.digest,
        "created": version.created.isoformat(),
        "kind": manifest.kind,
        "licence": manifest.licence,
        "aliases": list(pointing),
        "bytes": sum(blob.size for blob in manifest.files.values()),
    }


def detail(version: Version, pointing: Sequence[str]) -> dict[str, Any]:
    """`show --json`: the manifest, without the body's geometry, which is no reading for a terminal."""
    manifest = version.manifest.model_dump(mode="json", exclude={"character": {"skeleton", "mjcf"}})
    return summary(version, pointing) | {key: manifest[key] for key in manifest if key != "name"}


def pointing(store: Store, version: Version) -> list[str]:
    """The names that mean this version now."""
    names = [alias for alias, number in store.aliases(version.name).items() if number == version.number]
    return ["latest", *names] if store.latest(version.name) == version.number else names


def listing(rows: Sequence[dict[str, Any]]) -> str:
    header = ("SKILL", "VERSION", "KIND", "ALIASES", "CREATED", "DIGEST", "SIZE", "LICENCE")
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
            )
            for row in rows
        ],
    )


def page(shown: dict[str, Any]) -> str:
    """`show`: the facts first, then graphs, card and lineage."""
    lines = [f"{shown['ref']}  {shown['kind']}  {shown['digest']}"]
    lines += [f"  aliases    {', '.join(shown['aliases']) or '-'}", f"  created    {shown['created']}"]
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


def history(moves: Sequence[AliasMove]) -> str:
    rows = [
        (f"{m.at:%Y-%m-%d %H:%M:%S}", m.alias, m.previous or "-", m.number, short(m.digest), m.by, m.why or "-")
        for m in moves
    ]
    return table(("WHEN (UTC)", "ALIAS", "FROM", "TO", "DIGEST", "BY", "WHY"), rows)


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
            lines += [f"{indent}{key}", *_tree(value, depth + 1)]
        else:
            lines.append(f"{indent}{key}: {value:.4g}" if isinstance(value, float) else f"{indent}{key}: {value}")
    return lines


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
