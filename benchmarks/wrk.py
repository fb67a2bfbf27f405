"""wrk: a load generator in C, if it is installed. On cores shared with the server it takes a third
of the time of `load.py`."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

# The request's bytes are sent as they are, not built by wrk; 400 and above count as errors.
SCRIPT = """
function init(args)
    local file = io.open(args[1], "rb")
    payload = file:read("*a")
    file:close()
end

function request() return payload end

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
    """Successful responses a second, on one thread. Raises RuntimeError if one was not
    successful."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.lua"
        payload = Path(folder) / "request"
        script.write_text(SCRIPT)
        payload.write_bytes(request)
        pinned = ["taskset", "-c", ",".join(map(str, sorted(cores)))]
        how = [
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "-s",
            str(script),
            f"http://{address[0]}:{address[1]}",
            "--",
            str(payload),
        ]
        run = subprocess.run([*pinned, "wrk", *how], capture_output=True, text=True, check=True)
    found = json.loads(run.stdout.splitlines()[-1])
    if found["refused"] or found["failed"]:
        raise RuntimeError(
            f"{found['refused']} replies were errors, {found['failed']} connections failed"
        )
    return found["answered"] / found["seconds"]
