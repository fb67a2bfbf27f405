"""A version as plain values for programs and as a page for people: `show`, and the README of an
export.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from skills_store.catalog.text import escape, format_size, shorten_digest
from skills_store.catalog.value import format_value
from skills_store.version import Summary, Version, summarize


def describe_summary(
    summary: Summary, aliases: Sequence[str], protected: Collection[str] = ()
) -> dict[str, Any]:
    """A row of `ls --json`: `aliases` point to this version, `protected` are the skill's protected
    aliases.
    """
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


def describe_version(
    version: Version, aliases: Sequence[str] = (), protected: Collection[str] = ()
) -> dict[str, Any]:
    """`show --json`: the manifest without the body's geometry, which is too long for a terminal."""
    geometry = {"character": {"skeleton", "mjcf"}}
    manifest = version.manifest.model_dump(mode="json", exclude=geometry)
    rest = {key: value for key, value in manifest.items() if key != "name"}
    return describe_summary(summarize(version), aliases, protected) | rest


def format_page(page: dict[str, Any]) -> str:
    """Facts, graphs, files, card and lineage, from what `describe_version` returns."""
    graphs = [f"  {name}: {_format_signature(graph)}" for name, graph in page["graphs"].items()]
    files = [_format_file(file, blob) for file, blob in page["files"].items()]
    card = _format_tree(page["card"]) or ["  -"]
    sections = {
        "graphs": graphs,
        "files": files,
        "card": card,
        "lineage": _format_lineage(page["lineage"]),
    }
    lines = _format_facts(page)
    for title, body in sections.items():
        lines += ["", title, *body]
    return "\n".join(lines)


def _format_facts(page: dict[str, Any]) -> list[str]:
    latent = page["latent"]
    lines = [
        f"{page['ref']}  {page['kind']}  {page['digest']}",
        f"  aliases    {_format_aliases(page) or '-'}",
        f"  created    {page['created']}",
        f"  licence    {page['licence']}",
        f"  character  {_format_character(page['character'])}",
        f"  latent     {latent['dim']} on the unit sphere, {len(latent['clips'])} clips embedded",
    ]
    if task := page["task"]:
        parent = task["parent"]
        lines += [
            f"  task       {task['name']}, a decision every {task['llc_steps']} control steps",
            f"  parent     {parent['name']}@{parent['version']}  {parent['digest']}",
        ]
    return lines


def _format_lineage(lineage: dict[str, Any]) -> list[str]:
    clips = ", ".join(clip["name"] for clip in lineage["clips"])
    commit = lineage["git_commit"] or "-"
    changes = " (with uncommitted changes)" if lineage["git_dirty"] else ""
    return [
        f"  clips      {clips or '-'}",
        f"  seed       {lineage['seed']}",
        f"  commit     {commit}{changes}",
        f"  hardware   {lineage['hardware'] or '-'}",
    ]


def _format_file(file: str, blob: dict[str, Any]) -> str:
    return f"  {file}  {format_size(blob['size'])}  {shorten_digest(blob['digest'])}"


def _format_aliases(page: dict[str, Any]) -> str:
    protected = page["protected"]
    return ", ".join(
        f"{each} (protected)" if each in protected else each for each in page["aliases"]
    )


def _format_character(character: dict[str, Any]) -> str:
    rate = 1 / character["control_dt"]
    return f"{character['name']}, {len(character['joints'])} joints, {rate:.3g} Hz"


def _format_signature(graph: dict[str, Any]) -> str:
    inputs = _format_tensors(graph["inputs"])
    outputs = _format_tensors(graph["outputs"])
    return f"{inputs} -> {outputs}  opset {graph['opset']}"


def _format_tensors(tensors: list[dict[str, Any]]) -> str:
    return ", ".join(
        f"{tensor['name']}({', '.join(map(str, tensor['shape']))})" for tensor in tensors
    )


def _format_tree(values: dict[str, Any], depth: int = 1) -> list[str]:
    lines = []
    indent = "  " * depth
    for key, value in values.items():
        if isinstance(value, dict):
            lines += [indent + escape(key), *_format_tree(value, depth + 1)]
        else:
            text = format_value(value) if isinstance(value, float | list) else value
            lines.append(indent + escape(f"{key}: {text}"))
    return lines
