"""Text of others, as a terminal may see it."""

from __future__ import annotations


def plain(text: str) -> str:
    """What would act on a terminal, or look like another line, as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
