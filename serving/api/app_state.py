"""What the routes read from the application: its service, and whether the process is draining."""

from __future__ import annotations

from fastapi import Request

from serving.models.service import Service
from serving.wire.problems import Refusal


def get_service(request: Request) -> Service:
    return request.app.state.service


def refuse_if_draining(request: Request) -> None:
    """Raises Refusal (503) where the process is about to end."""
    if request.app.state.gateway.draining:
        raise Refusal(
            503, "draining", "this process is about to end", None, "another replica", retry_after=1
        )
