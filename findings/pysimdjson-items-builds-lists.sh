#!/usr/bin/env bash
# pysimdjson 7.0.2: items() and values() of a parsed object convert its arrays to Python lists, number
# by number, while a look-up by name and a loop over an array give views.
#
# One would guess that items() pairs each name with what a look-up by that name gives. Code that goes
# over a document's fields to hand its arrays to numpy (as_buffer) makes a Python object of each
# number after all, and gets a list, which has no as_buffer. A loop over the names, with a look-up
# for each, keeps the views.
#
# Seen:
#   document["frames"] is a simdjson.Array
#   of items() is a list
#   of values() is a list
#   in a loop over an array of arrays: simdjson.Array
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'pysimdjson==7.0.2'
"$folder/venv/bin/python" - <<'EOF'
import simdjson

parser = simdjson.Parser()
document = parser.parse(b'{"frames": [[1.0, 2.0], [3.0, 4.0]]}')
looked_up = document["frames"]
of_items = dict(document.items())["frames"]
of_values = list(document.values())[0]
in_loop = {type(row).__name__ for row in looked_up}
print(f'document["frames"] is a simdjson.{type(looked_up).__name__}')
print(f"of items() is a {type(of_items).__name__}")
print(f"of values() is a {type(of_values).__name__}")
print(f"in a loop over an array of arrays: simdjson.{', '.join(in_loop)}")
assert type(looked_up) is simdjson.Array and in_loop == {"Array"}
assert type(of_items) is list and type(of_values) is list
assert memoryview(looked_up.as_buffer(of_type="d")).nbytes == 4 * 8
EOF
