"""Text for a terminal: escaped, aligned, and short enough to read."""

from __future__ import annotations

from collections.abc import Sequence


def escape(text: str) -> str:
    """Escape characters that would control a terminal or begin another line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their widest cell, two spaces apart."""
    escaped = [list(map(escape, map(str, row))) for row in rows]
    cells = [list(header), *escaped]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_align(row, widths) for row in cells)


def shorten_digest(digest: str) -> str:
    return digest[: len("sha256:") + 12]


def format_size(count: int) -> str:
    """`count` bytes as text."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _align(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
    return "  ".join(padded).rstrip()
