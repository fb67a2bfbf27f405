"""Logs: one JSON object per line on stderr, for log collectors. The caller chooses the fields."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import orjson

# uvicorn's websockets-sansio reports a refused handshake so, although its reply was sent: it notes
# only an accepted one as complete. The gateway accepts or refuses each.
REFUSED_HANDSHAKE = "ASGI callable returned without completing handshake."
FIELDS = ("request_id", "route", "status", "ms", "key")


class Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{
                name: value for name in FIELDS if (value := getattr(record, name, None)) is not None
            },
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def is_no_refused_handshake(record: logging.LogRecord) -> bool:
    return record.name != "uvicorn.error" or record.getMessage() != REFUSED_HANDSHAKE


def configure(access: bool) -> None:
    """Log warnings and above of all loggers; with `access`, one line per request."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    handler.addFilter(is_no_refused_handshake)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("repertoire.access").setLevel(logging.INFO if access else logging.WARNING)
