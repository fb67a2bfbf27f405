"""The application on Ray Serve with two replicas, where `repertoire[ray]` is installed."""

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
def test_two_replicas_match_the_library(shared):
    state = state_rows(3)
    z = skill_rows(3)
    expected = SkillLibrary.open(shared, "humanoid").act(state, z)
    env = environment(shared.root) | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    }
    with subprocess.Popen(
        [sys.executable, "-c", RUN], env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("replicas"))
            assert line == "replicas 2\n"
            body = json.dumps({"state": state.tolist(), "z": z.tolist()})
            for _ in range(20):
                response = httpx.post("http://127.0.0.1:8977/act", content=body, timeout=20)
                assert response.status_code == 200, response.text
                np.testing.assert_array_equal(
                    np.array(response.json()["targets"], np.float32), expected
                )
            refused = httpx.post("http://127.0.0.1:8977/act", content="{", timeout=20)
            assert (refused.status_code, refused.json()["code"]) == (422, "not_json")
        finally:
            process.terminate()
