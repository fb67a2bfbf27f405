"""GET /docs: the OpenAPI document in a browser, without internet and below any path.

The page's assets come from the package `fastapi-offline`, and all of its links are relative.
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse

from serving.wire.problems import Refusal

router = APIRouter(include_in_schema=False)
ASSETS = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
}


@router.get("/docs")
async def show_docs() -> HTMLResponse:
    return get_swagger_ui_html(
        title="Repertoire",
        openapi_url="openapi.json",
        swagger_js_url="docs-assets/swagger-ui-bundle.js",
        swagger_css_url="docs-assets/swagger-ui.css",
        swagger_favicon_url="docs-assets/favicon.png",
    )


@router.get("/docs-assets/{name}")
async def send_asset(name: str) -> FileResponse:
    if name not in ASSETS:
        raise Refusal(404, "not_found", "no such file", "name", f"one of: {', '.join(ASSETS)}")
    return FileResponse(str(files("fastapi_offline") / "static" / name), media_type=ASSETS[name])
