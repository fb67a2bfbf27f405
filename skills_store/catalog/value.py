"""One value of a manifest or card, shortened to fit a table."""

from __future__ import annotations

import json
from typing import Any

from skills_store.catalog.text import format_size, shorten_digest

LONGEST_LIST = 4  # items shown
LONGEST_TEXT = 40  # characters shown whole


def format_value(value: Any) -> str:
    match value:
        case float():
            text = f"{value:.4g}"
        case list() if len(value) > LONGEST_LIST:
            text = f"{len(value)} values"
        case {"digest": str(digest), "size": int(size)}:
            text = f"{format_size(size)} {shorten_digest(digest)}"
        case {"digest": str(digest), "source": source}:
            text = f"{shorten_digest(digest)} {source}"
        case str() if len(value) > LONGEST_TEXT:
            text = f"{value[:30]}... ({len(value)} characters)"
        case list() | dict():
            text = json.dumps(value, ensure_ascii=False)
        case _:
            text = str(value)
    return text
