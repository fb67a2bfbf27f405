#!/usr/bin/env bash
# brax 0.14.2: an environment that its training wrappers reset begins each episode in its very first state.
#
# `wrap`, which brax's own agents put around an environment, calls reset once. The state of that call is kept and put
# back at the end of each episode. So an environment that begins at a random pose, command or phase of a motion draws
# one of them per row of the batch, and meets no other however long the training is. Of the state, only pipeline_state
# and obs are put back: what the environment keeps in `info`, as a clock or the last action, runs on into the next
# episode.
#
# Seen (jax 0.10.2, Python 3.11, Linux, CPU), of 2 rows that begin at a random phase and count their steps in `info`:
#   phases at the start of four episodes, wrapped    2 different ones, the same at each start
#   phases after four calls of reset                 8 different ones
#   counts at the end of four episodes of 3 steps    3 6 9 12
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'brax==0.14.2' 'jax==0.10.2' 'flax==0.12.8' 'mujoco==4.0.0' \
    'mujoco-mjx==3.17.0' 'numpy==2.4.6'

cat > phases.py <<'PY'
import jax
import jax.numpy as jnp
from brax.envs.base import Env, State
from brax.envs.wrappers.training import wrap


class Clip(Env):
    """Plays a motion from a random phase on."""

    observation_size = 1
    action_size = 1
    backend = "none"

    def reset(self, rng):
        phase = jax.random.uniform(rng, (1,))
        zero = jnp.zeros(())
        return State(pipeline_state=None, obs=phase, reward=zero, done=zero, metrics={}, info={"count": zero})

    def step(self, state, action):
        return state.replace(obs=state.obs + 0.01, info=state.info | {"count": state.info["count"] + 1})


env = wrap(Clip(), episode_length=3)
reset, step = jax.jit(env.reset), jax.jit(env.step)


def draw(seed):
    return reset(jax.random.split(jax.random.PRNGKey(seed), 2))


state = draw(0)
starts, counts = [], []
for _ in range(4):
    starts.append(state.obs[:, 0].tolist())
    for _ in range(3):
        state = step(state, jnp.zeros((2, 1)))
    counts.append(int(state.info["count"][0]))
others = [phase for seed in range(4) for phase in draw(seed).obs[:, 0].tolist()]
print(f"different phases in four episodes of 2 rows: {len({phase for start in starts for phase in start})}")
print("the same at each start:", all(start == starts[0] for start in starts))
print("counts:", *counts)
print("different phases in four resets of 2 rows:", len(set(others)))
PY
# mujoco-mjx prints that it has no warp, which is optional
env/bin/python phases.py 2> errors | grep -v '^Failed to import' | tee seen
diff seen - <<'EXPECTED'
different phases in four episodes of 2 rows: 2
the same at each start: True
counts: 3 6 9 12
different phases in four resets of 2 rows: 8
EXPECTED
