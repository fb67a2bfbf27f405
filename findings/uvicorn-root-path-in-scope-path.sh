#!/usr/bin/env bash
# uvicorn 0.54.0 with starlette 1.10.0: `--root-path /rep` puts /rep in front of every request's
# scope["path"], while the application's routes still match the path of the request line.
#
# One would guess that the root path is for the application's links alone. ASGI has it in front of
# the path, and starlette takes it away only while it matches routes: an ASGI application around the
# router, such as one that looks up the path in a table, reads a path that no route has and no
# request had. Behind a proxy that leaves the prefix in the request the path has it twice, and no
# route matches.
#
# Seen, with a route /act:
#   GET /act: 200, scope["path"] around the router is /rep/act
#   GET /rep/act: 404, scope["path"] around the router is /rep/rep/act
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'uvicorn==0.54.0' 'starlette==1.10.0' 'httpx==0.28.1'
"$folder/venv/bin/python" - <<'EOF'
import asyncio

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

paths = []


async def act(request):
    return PlainTextResponse("ok")


router = Starlette(routes=[Route("/act", act)])


async def around(scope, receive, send):
    if scope["type"] == "http":
        paths.append(scope["path"])
    await router(scope, receive, send)


async def main():
    config = uvicorn.Config(around, port=0, root_path="/rep", log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for path, status, around_router in (
            ("/act", 200, "/rep/act"),
            ("/rep/act", 404, "/rep/rep/act"),
        ):
            reply = await client.get(path)
            print(f'GET {path}: {reply.status_code}, scope["path"] around the router is {paths[-1]}')
            assert (reply.status_code, paths[-1]) == (status, around_router)
    server.should_exit = True
    await serving


asyncio.run(main())
EOF
