"""Fuzzed requests get documented replies and no 5xx; the long runs are `slow`."""

import json
import random
import re
import subprocess
import sys

import numpy as np
import ormsgpack
import pytest

from pretrain.characters.character import load_character
from serving import wire
from serving.api.act import ActRequest
from serving.wire import oip
from serving.wire.problems import Refusal
from serving.wire.rows import InputSpec, broadcast, project_to_sphere, read
from serving.wire.schemas import validate
from tests.serving.local import skill_rows, state_rows, write_store
from tests.serving.process import running
from tests.tiny import POLICY, skills_files, skills_manifest

STATE = state_rows(2)
Z = skill_rows(2)
FIELDS = {"state": STATE.tolist(), "z": Z.tolist(), "skill": "humanoid", "strict": False, "seed": 3}
TENSORS = {
    b"content-type": b"application/octet-stream",
    b"x-tensors": b"state=2x69,z=2x8",
    b"x-fields": b'{"seed": 3}',
}
HEAD = json.dumps(
    {
        "id": "a",
        "inputs": [
            {
                "name": "state",
                "shape": [2, 69],
                "datatype": "FP32",
                "parameters": {"binary_data_size": 552},
            },
            {"name": "z", "shape": [2, 8], "datatype": "FP32", "data": Z.tolist()},
        ],
        "outputs": [{"name": "targets", "parameters": {"binary_data": True}}],
    }
).encode()
GOOD = {
    "json": ({b"content-type": b"application/json"}, json.dumps(FIELDS).encode()),
    "msgpack": ({b"content-type": b"application/msgpack"}, ormsgpack.packb(FIELDS)),
    "raw": (TENSORS, STATE.tobytes() + Z.tobytes()),
    "oip": ({oip.LENGTH: b"%d" % len(HEAD)}, HEAD + STATE.tobytes()),
}
SPECS = {name: InputSpec(name, POLICY.input(name), 16) for name in ("state", "z")}


def mutated(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(changed) or 1)
        kind = rng.randrange(5)
        if kind == 0:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del changed[at : at + rng.choice([1, 4, 50])]
        elif kind == 2:
            changed[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 4, 9])))
        elif kind == 3:
            changed[at:at] = rng.choice(
                [b"[", b"{", b"NaN", b"1e999", b"-", b'"', b"null", b"\xff" * 8, b"9" * 30]
            )
        else:
            piece = changed[at : at + rng.randrange(64)]
            changed[at:at] = piece
    return bytes(changed)


def decode(kind: str, headers: dict[bytes, bytes], body: bytes) -> None:
    """Decode and validate a request as before a run of the graph."""
    if kind == "oip":
        call = oip.decode(body, headers)
        for name, array in call.tensors.items():
            if name in SPECS:
                read(array, SPECS[name])
        return
    fields = validate(ActRequest, wire.choose_encoding(headers).decode(body, headers))
    if isinstance(fields.z, str):
        return
    state = read(fields.state, SPECS["state"])
    z = broadcast(read(fields.z, SPECS["z"]), state, ("z", "state"))
    array, _ = project_to_sphere(z, "z", fields.strict or False)
    assert array.dtype == state.array.dtype == np.float32
    assert np.isfinite(array).all()
    assert np.isfinite(state.array).all()
    assert state.array.shape[1:] == (69,)


def fuzz(kind: str, count: int, seed: int) -> dict[str, int]:
    rng = random.Random(seed)
    (headers, body) = GOOD[kind]
    seen = {"accepted": 0, "refused": 0}
    decode(kind, headers, body)
    for _ in range(count):
        changed = dict(headers)
        if kind in ("raw", "oip") and rng.random() < 0.3:
            name = rng.choice(list(changed))
            changed[name] = mutated(changed[name], rng)
        try:
            decode(kind, changed, mutated(body, rng) if rng.random() < 0.9 else body)
            seen["accepted"] += 1
        except Refusal as refusal:
            seen["refused"] += refusal.status in (404, 413, 422)
    assert sum(seen.values()) == count
    return seen


@pytest.mark.parametrize("kind", GOOD)
def test_mutated_bodies_are_read_or_refused(kind):
    seen = fuzz(kind, 3000, seed=1)
    assert min(seen.values()) > 10  # the mutations reach both sides


@pytest.mark.slow
@pytest.mark.parametrize("kind", GOOD)
def test_a_million_mutated_bodies_are_read_or_refused(kind):
    fuzz(kind, 1_250_000, seed=2)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """With the real humanoid's skeleton, so that uploads are read."""
    store = write_store(tmp_path_factory.mktemp("fuzzed"))
    manifest = skills_manifest()
    body = manifest.character.model_copy(
        update={"skeleton": load_character("humanoid").skeleton.to_dict()}
    )
    store.publish(manifest.model_copy(update={"character": body}), skills_files())
    with running(store.root) as service:
        yield service


def run_schemathesis(url, examples, folder):
    """Run schemathesis against the service; returns its number of cases. A schema states no row
    widths, so a body that fits it may be a 422."""
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "run",
        f"{url}/openapi.json",
        "--max-examples",
        str(examples),
    ]
    command += [
        "--phases",
        "examples,fuzzing",
        "--exclude-checks",
        "positive_data_acceptance",
        "--no-color",
    ]
    command += ["--seed", "1", "--suppress-health-check", "all"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return int(re.findall(r"(\d+) generated", done.stdout)[0])


def test_every_route_answers_as_documented(live, tmp_path):
    assert run_schemathesis(live.url, 5, tmp_path) > 50


@pytest.mark.slow
def test_every_route_answers_as_documented_in_100k_requests(live, tmp_path):
    assert run_schemathesis(live.url, 7000, tmp_path) >= 100_000
