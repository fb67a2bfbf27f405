"""Router: FastAPI's own, whose GET routes answer HEAD, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.types import DecoratedCallable


class Router(APIRouter):
    """HEAD has the status and headers of GET; the server sends no body.

    FastAPI documents a route of two methods twice under one operation id. So each GET route is here
    twice: the first one answers both methods, the second one, of GET alone, is in the document.
    """

    def get(self, path: str, **how: Any) -> Callable[[DecoratedCallable], DecoratedCallable]:
        """As `APIRouter.get`."""

        def add(endpoint: DecoratedCallable) -> DecoratedCallable:
            hidden: dict[str, Any] = {**how, "include_in_schema": False}
            self.add_api_route(path, endpoint, methods=["GET", "HEAD"], **hidden)
            self.add_api_route(path, endpoint, methods=["GET"], **how)
            return endpoint

        return add
