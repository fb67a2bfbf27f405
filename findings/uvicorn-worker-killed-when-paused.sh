#!/usr/bin/env bash
# uvicorn 0.54.0: a worker that ends while it is pinged is noticed only after timeout_worker_healthcheck.
#
# The supervisor pings each worker through a pipe twice a second and waits for the answer. It keeps its own copy of the
# worker's end of that pipe, so the end of the worker does not end the wait, and SIGTERM to the supervisor waits, too.
# One would guess that a dead worker is replaced within the half second.
#
# Seen (Python 3.11, Linux), with a healthcheck of 6 s, seconds until two workers live again:
#   killed while running                   below 3
#   killed after it was paused for 1.2 s   above 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'uvicorn==0.54.0'

cat > app.py <<'PY'
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
PY

cat > measure.py <<'PY'
import os
import signal
import subprocess
import sys
import time

command = [sys.executable, "-m", "uvicorn", "app:app", "--port", "0", "--workers", "2", "--lifespan", "off"]
command += ["--timeout-worker-healthcheck", "6", "--log-level", "critical"]
server = subprocess.Popen(command)


def workers():
    found = subprocess.run(["pgrep", "-P", str(server.pid), "-f", "spawn_main"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def alive(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"


def await_two(without):
    started = time.monotonic()
    while True:
        pids = [pid for pid in workers() if pid != without and alive(pid)]
        if len(pids) == 2:
            return time.monotonic() - started
        if time.monotonic() - started > 60:
            sys.exit("the worker was not replaced within 60 s")
        time.sleep(0.05)


await_two(None)
time.sleep(2)
try:
    first = workers()[0]
    os.kill(first, signal.SIGKILL)
    print("running", "below 3" if await_two(first) < 3 else "3 or more")
    time.sleep(3)
    second = workers()[0]
    os.kill(second, signal.SIGSTOP)
    time.sleep(1.2)
    os.kill(second, signal.SIGKILL)
    print("paused", "above 4" if await_two(second) > 4 else "4 or less")
finally:
    server.terminate()
    server.wait(20)
PY

env/bin/python measure.py | tee seen
diff seen - <<'EXPECTED'
running below 3
paused above 4
EXPECTED
