"""The same application on Ray Serve, two replicas of it. Where Ray is not installed
(`repertoire[ray]`), nothing."""

import importlib.util
import json
import os
import subprocess
import sys

import httpx
import numpy as np
import pytest

from skills_store.runtime.library import SkillLibrary
from tests.serving.local import skill_rows, state_rows
from tests.serving.process import ROOT, environment

RUN = """
import time
import ray
from ray import serve
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": 8977})
from serving.ray_app import app
serve.run(app)
found = serve.status().applications["default"].deployments["Replica"].replica_states
print("replicas", sum(found.values()), flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray here")
def test_two_replicas_match_the_library(standing):
    state = state_rows(3)
    z = skill_rows(3)
    wanted = SkillLibrary.open(standing, "humanoid").act(state, z)
    where = environment(standing.root) | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    }
    with subprocess.Popen(
        [sys.executable, "-c", RUN], env=where, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("replicas"))
            assert line == "replicas 2\n"
            ask = json.dumps({"state": state.tolist(), "z": z.tolist()})
            for _ in range(20):
                answer = httpx.post("http://127.0.0.1:8977/act", content=ask, timeout=20)
                assert answer.status_code == 200, answer.text
                np.testing.assert_array_equal(
                    np.array(answer.json()["targets"], np.float32), wanted
                )
            refused = httpx.post("http://127.0.0.1:8977/act", content="{", timeout=20)
            assert (refused.status_code, refused.json()["code"]) == (422, "not_json")
        finally:
            process.terminate()
