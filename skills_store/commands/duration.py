"""Time spans as people write them: `90s`, `15m`, `1h`, `7d`."""

from __future__ import annotations

import re

from skills_store.errors import InvalidDuration

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: str) -> float:
    """Seconds. A bare number is seconds, too."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text)
    if match is None:
        raise InvalidDuration(f"{text!r} is no time span; write 90s, 15m, 1h or 7d")
    return float(match[1]) * SECONDS[match[2] or "s"]
