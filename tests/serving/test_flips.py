"""An alias that moves often under load: no failed request, no mixed reply, bounded latency."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from skills_store.runtime.library import SkillLibrary
from tests.serving.local import skill_rows, state_rows
from tests.serving.process import connected, receive, request, running
from tests.tiny import publish_tiny

STATE = state_rows(1)[0]
Z = skill_rows(1)[0]
BODY = json.dumps({"state": STATE.tolist(), "z": Z.tolist()}).encode()
# s between flips, a little more than the service's refresh interval
INTERVAL = 0.06
CLIENTS = """
import json, sys
from benchmarks import load
host, port, seconds, body = sys.argv[1:]
found = load.closed((host, int(port)), [load.post("/act", body.encode())], 4, float(seconds))
print(json.dumps([found.times, found.statuses, found.failed]))
"""


def targets_by_digest(store):
    opened = (SkillLibrary.open(store, version) for version in store.versions("humanoid"))
    return {one.version.digest: one.act([STATE], [Z])[0] for one in opened}


def check(response, targets):
    """Assert that a response is of one version, and return its digest."""
    digest = response.headers["x-skill-digest"]
    assert response.status == 200
    np.testing.assert_array_equal(
        np.array(json.loads(response.body)["targets"], np.float32), targets[digest]
    )
    return digest


def load_while(address, seconds, flip):
    """Response times of four connections in a process of their own, while `flip` is repeated."""
    command = [
        sys.executable,
        "-c",
        CLIENTS,
        address[0],
        str(address[1]),
        str(seconds),
        BODY.decode(),
    ]
    until = time.monotonic() + seconds + 1  # the process takes a moment to begin
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while time.monotonic() < until:
            due = time.monotonic() + INTERVAL
            flip()
            time.sleep(max(0.0, due - time.monotonic()))
        times, statuses, failed = json.loads(process.communicate()[0])
    assert set(statuses) == {"200"}
    assert failed == 0
    return times


@pytest.mark.parametrize(
    ("versions", "flips", "requests", "factor"),
    [
        (20, 30, 1000, None),
        pytest.param(2, 1000, 200_000, 2, marks=pytest.mark.slow),  # both stay open
        pytest.param(
            1100, 1000, 200_000, 2, marks=pytest.mark.slow
        ),  # each is new and evicts an older one
    ],
)
def test_an_alias_moves_under_load(store, versions, flips, requests, factor):
    """Compared with as many moves of an alias that no request names, which cost the same."""
    for seed in range(1, versions):
        publish_tiny(store, seed=seed)
    store.alias("humanoid", "served", 1)
    targets = targets_by_digest(store)
    moved = {"served": 0, "other": 0}
    seen = set()
    times = {alias: [] for alias in moved}
    room = 4 * sum(blob.size for blob in store.resolve("humanoid@1").manifest.files.values())
    with (
        running(store.root, skill="humanoid@served", refresh=0.05, max_memory=room) as live,
        connected(live.address) as sock,
    ):

        def flip(alias):
            store.alias("humanoid", alias, 1 + moved[alias] % versions)
            moved[alias] += 1
            sock.sendall(request("/act", BODY))
            seen.add(check(receive(sock), targets))

        while moved["served"] < flips or len(times["served"]) < requests:
            for alias in moved:
                times[alias] += load_while(live.address, 2, lambda alias=alias: flip(alias))
    assert len(seen) > min(versions, flips) / 2
    late = np.percentile(times["served"], 99)
    usual = np.percentile(times["other"], 99)
    assert factor is None or late <= factor * usual
