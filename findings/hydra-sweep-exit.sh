#!/usr/bin/env bash
# hydra-core 1.3.8: sys.exit(0) in one job of a sweep ends the whole sweep, with success.
#
# The jobs behind it do not run, and the exit status says nothing of that. An exception does not end a sweep: the other
# jobs run, and the status is 1.
#
# Seen (Python 3.11, Linux), of a sweep over n=1,2,3 whose second job ends early:
#   by sys.exit(0)        jobs 1 2     status 0
#   by an exception       jobs 1 2 3   status 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'hydra-core==1.3.8'

cat > app.py <<'PY'
import sys

import hydra


@hydra.main(version_base="1.3", config_path=None)
def app(cfg):
    with open(cfg.log, "a") as log:
        log.write(f"{cfg.n} ")
    if cfg.n == 2 and cfg.end == "exit":
        sys.exit(0)
    if cfg.n == 2 and cfg.end == "error":
        raise ValueError("the second job")


app()
PY

# jobs and exit status of a sweep whose second job ends in the way that $1 names
sweep() {
    local status=0
    env/bin/python app.py --multirun "+log=$folder/$1" "+end=$1" +n=1,2,3 > output 2>&1 || status=$?
    echo "$1: jobs $(cat "$1")status $status"
}

sweep exit | tee seen
sweep error | tee -a seen
diff seen - <<'EXPECTED'
exit: jobs 1 2 status 0
error: jobs 1 2 3 status 1
EXPECTED
