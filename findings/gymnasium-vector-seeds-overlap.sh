#!/usr/bin/env bash
# gymnasium 1.4.0: SyncVectorEnvs reset with neighbouring seeds begin in the same states.
#
# SyncVectorEnv gives environment i the seed s + i. Reset with seeds 0, 1 and 2, as for "three seeds" of an experiment or
# of an evaluation, 64 environments share 63 and 62 of their first states: the runs are not independent. A vector
# environment of its own kind, as CartPole's, shares none. Seeds as far apart as there are environments share none in
# either.
#
# Seen (Python 3.11, Linux), of 64 environments, first states in common of seeds 0 and 1, 0 and 2, 0 and 64:
#   sync                 63  62  0
#   vector_entry_point   0   0   0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'gymnasium==1.4.0' 'numpy==2.4.6'

cat > seeds.py <<'PY'
import gymnasium

COUNT = 64


def first_states(mode, seed):
    """The first observation of each of COUNT environments, as a set of rows."""
    envs = gymnasium.make_vec("CartPole-v1", num_envs=COUNT, vectorization_mode=mode)
    observations, _ = envs.reset(seed=seed)
    envs.close()
    return {tuple(row) for row in observations.tolist()}


for mode in ("sync", "vector_entry_point"):
    shared = [len(first_states(mode, 0) & first_states(mode, seed)) for seed in (1, 2, 64)]
    print(f"{mode}:", *shared)
PY
env/bin/python seeds.py | tee seen
diff seen - <<'EXPECTED'
sync: 63 62 0
vector_entry_point: 0 0 0
EXPECTED
