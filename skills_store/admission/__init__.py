"""Admission of a version: safe names, matching graphs and files, a consistent manifest, graphs that
pass the gate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from skills_store import reference
from skills_store.admission import contract
from skills_store.errors import GateRefusal, StoreError
from skills_store.graph import Graph
from skills_store.manifest import Manifest


def admit(manifest: Manifest, files: Mapping[str, bytes], parent: Manifest | None) -> None:
    """Raises GateRefusal with every reason unless this may be published. `parent` is the library
    that a controller is bound to.
    """
    reference.check_name(manifest.name)
    reference.check_files(files)
    graphs = {graph.file: graph for graph in manifest.graphs.values()}
    reasons = [f"graph file {file} is missing" for file in graphs if file not in files]
    reasons += [
        f"{file} belongs to no graph"
        for file in files
        if file.endswith(".onnx") and file not in graphs
    ]
    reasons += contract.find_breaches(manifest, parent)
    reasons = reasons or _check_starts(manifest, files)
    if reasons:
        raise GateRefusal(manifest.name, reasons)
    gate = _load_gate()
    for file, graph in graphs.items():
        gate(f"{file} of {manifest.name}", files[file], graph)


def _check_starts(manifest: Manifest, files: Mapping[str, bytes]) -> list[str]:
    # Only a publish needs numpy: a listing starts without it.
    from skills_store.admission.start_states import check_starts

    return list(check_starts(manifest, files))


def _load_gate() -> Callable[[str, bytes, Graph], None]:
    # onnx is heavy, and absent from a serving image: only a publish needs it.
    try:
        from skills_store.admission.gate import admit
    except ImportError as error:
        raise StoreError(
            f"publishing needs the onnx package (repertoire[store]): {error}"
        ) from error
    return admit


def encode_canonical(manifest: Manifest) -> tuple[bytes, Manifest]:
    """Canonical JSON (sorted keys, no spaces, no NaN), so that a manifest has one digest; and the
    manifest parsed from it."""
    try:
        plain = manifest.model_dump(mode="json")
        _refuse_huge(plain)
        data = json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
        return data, Manifest.model_validate_json(data)
    except (ValidationError, PydanticSerializationError, ValueError) as error:
        raise GateRefusal(
            manifest.name, [f"its manifest is not plain JSON: {' '.join(str(error).split())}"]
        ) from error


def _refuse_huge(value: object) -> None:
    """Raises ValueError for an integer that most JSON parsers cannot hold."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError(f"an integer of {len(str(abs(value)))} digits")
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        _refuse_huge(inner)


def parse_foreign(data: bytes) -> Manifest:
    """Parse a manifest from elsewhere, whose bytes are kept."""
    try:
        manifest = Manifest.model_validate_json(data)
        # Refuses what cannot be written as plain JSON: NaN, and numbers out of range.
        encode_canonical(manifest)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the whole"
        raise GateRefusal(
            "a manifest from elsewhere",
            [f"{error.error_count()} faults, the first in {field}: {first['msg']}"],
        ) from error
    if coerced := list(_find_coerced(json.loads(data), manifest.model_dump(mode="json"))):
        raise GateRefusal(
            "a manifest from elsewhere",
            [f"{field} is {value!r}, not a number" for field, value in coerced[:8]],
        )
    return manifest


def _find_coerced(given: Any, read: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Values that pydantic coerced to numbers but that are none in JSON, as "3" or true."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key in sorted(given.keys() & read.keys()):
            yield from _find_coerced(given[key], read[key], f"{path}.{key}" if path else key)
    elif isinstance(given, list) and isinstance(read, list):
        for i, (given_item, read_item) in enumerate(zip(given, read, strict=False)):
            yield from _find_coerced(given_item, read_item, f"{path}.{i}")
    elif (
        isinstance(read, int | float)
        and not isinstance(read, bool)
        and isinstance(given, str | bool)
    ):
        yield path, given
