#!/usr/bin/env bash
# numba 0.68.1: with a cache index that is cut short, each later process raises an error where it could compile.
#
# @njit(cache=True) treats its cache as something to be made again: where the index (.nbi) or the compiled code (.nbc) of
# a simulation's kernel is missing, or the source has changed, it compiles and writes anew. So one would guess the same
# of a file that is not complete, as a loss of power can leave one that was written without fsync. It is read without a
# check: the first call raises an error of pickle that names no file, and so does the first call of every later process,
# because nothing writes the file again. With a cut index, even a change of the source does not help. Deleting it does.
#
# Seen (Python 3.11, Linux), what two processes, one after the other, do then:
#   index deleted                 compile, then load
#   code deleted                  compile, then load
#   source changed                compile, then load
#   index cut to 20 bytes         UnpicklingError, again UnpicklingError
#   index empty                   EOFError, again EOFError
#   code cut to 20 bytes          UnpicklingError, again UnpicklingError
#   index cut, source changed     UnpicklingError, again UnpicklingError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'numba==0.68.1' 'numpy==2.4.6'
export NUMBA_CACHE_DIR=$folder/cache

cat > kernel.py <<'PY'
from numba import njit


@njit(cache=True)
def next_speed(speed, force, mass):
    return speed + force / mass * 0.01


try:
    next_speed(1.0, 2.0, 3.0)
    print("load" if next_speed.stats.cache_hits else "compile")
except Exception as error:
    print(type(error).__name__)
PY

# Does $2 to a cache that is complete, and prints what two processes do then.
show() {
    rm -rf cache
    env/bin/python kernel.py > first
    index=$(find cache -name '*.nbi')
    code=$(find cache -name '*.nbc')
    eval "$2"
    echo "$1: $(env/bin/python kernel.py), $(env/bin/python kernel.py)"
}
{
    show 'index deleted' 'rm "$index"'
    show 'code deleted' 'rm "$code"'
    show 'source changed' 'echo >> kernel.py'
    show 'index cut' 'truncate --size=20 "$index"'
    show 'index empty' 'truncate --size=0 "$index"'
    show 'code cut' 'truncate --size=20 "$code"'
    show 'index cut, source changed' 'truncate --size=20 "$index"; echo >> kernel.py'
} | tee seen
diff seen - <<'EXPECTED'
index deleted: compile, load
code deleted: compile, load
source changed: compile, load
index cut: UnpicklingError, UnpicklingError
index empty: EOFError, EOFError
code cut: UnpicklingError, UnpicklingError
index cut, source changed: UnpicklingError, UnpicklingError
EXPECTED
