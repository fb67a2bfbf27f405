#!/usr/bin/env bash
# uvloop 0.23.0 (libuv 1.52.1): one pass of the event loop accepts one waiting connection of a listening socket.
#
# asyncio's own loop accepts all that wait. A pass of a busy service lasts as long as the handlers of all its
# connections, so with 500 busy connections, 0.3 ms each, a new one waits 0.15 s for each that arrived before it, while
# established connections are served in every pass. A socket that is listened on through eight duplicates of its
# descriptor gets eight accepts in a pass. (uv__server_io in libuv's src/unix/stream.c; it accepted in a loop before 1.46.)
#
# Seen (Python 3.11, Linux), passes in which 24 waiting connections were accepted:
#   asyncio                     1
#   uvloop                     24
#   uvloop, eight duplicates    3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'uvloop==0.23.0'

cat > count.py <<'PY'
import asyncio
import socket

import uvloop

WAITING = 24


async def count(duplicates):
    loop = asyncio.get_running_loop()
    passes = 0
    accepted_in = []

    class Note(asyncio.Protocol):
        def connection_made(self, transport):
            accepted_in.append(passes)

    def begin_pass():
        nonlocal passes
        passes += 1
        loop.call_soon(begin_pass)

    listening = socket.create_server(("127.0.0.1", 0), backlog=100)
    sockets = [listening, *(listening.dup() for _ in range(duplicates - 1))]
    servers = [await loop.create_server(Note, sock=each) for each in sockets]
    address = listening.getsockname()
    waiting = [socket.create_connection(address) for _ in range(WAITING)]
    begin_pass()
    while len(accepted_in) < WAITING:
        await asyncio.sleep(0.01)
    for each in waiting:
        each.close()
    for server in servers:
        server.close()
    return len(set(accepted_in))


print("asyncio", asyncio.run(count(1)))
for duplicates in (1, 8):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print("uvloop", duplicates, runner.run(count(duplicates)))
PY

env/bin/python count.py | tee seen
diff seen - <<'EXPECTED'
asyncio 1
uvloop 1 24
uvloop 8 3
EXPECTED
