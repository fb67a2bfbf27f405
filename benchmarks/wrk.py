"""wrk: a load generator in C, where it is installed. It takes a third of what `load.py` does from
cores that it shares."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

# The request goes as it is, so wrk's own ways of writing one are not used; 400 and above count as
# errors.
SCRIPT = """
function init(args)
    local file = io.open(args[1], "rb")
    asked = file:read("*a")
    file:close()
end

function request() return asked end

function done(summary)
    local e = summary.errors
    local failed = e.connect + e.read + e.write + e.timeout
    local form = '{"answered": %d, "seconds": %f, "refused": %d, "failed": %d}'
    local seconds = summary.duration / 1e6
    io.write("\\n" .. string.format(form, summary.requests, seconds, e.status, failed))
end
"""


def installed() -> bool:
    return shutil.which("wrk") is not None


def closed(
    address: tuple[str, int], request: bytes, connections: int, seconds: int, cores: set[int]
) -> float:
    """Good answers a second, on one thread. RuntimeError where an answer was not good."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "ask.lua"
        asked = Path(folder) / "request"
        script.write_text(SCRIPT)
        asked.write_bytes(request)
        pinned = ["taskset", "-c", ",".join(map(str, sorted(cores)))]
        how = [
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "-s",
            str(script),
            f"http://{address[0]}:{address[1]}",
            "--",
            str(asked),
        ]
        run = subprocess.run([*pinned, "wrk", *how], capture_output=True, text=True, check=True)
    found = json.loads(run.stdout.splitlines()[-1])
    if found["refused"] or found["failed"]:
        raise RuntimeError(
            f"{found['refused']} answers were no success, {found['failed']} connections failed"
        )
    return found["answered"] / found["seconds"]
