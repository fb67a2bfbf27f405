"""`repertoire COMMAND ...`: every program of the project under one name. `repertoire COMMAND
--help` describes one.
"""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec

COMMANDS = {
    "pretrain": ("pretrain.train", "clips -> published skill library"),
    "motion": ("pretrain.motion", "check, preview and convert motion clips, make recipes"),
    "tracking": ("pretrain.tracking", "a policy that tracks clips, by DeepMimic, ADD or AWR"),
    "evaluate": ("pretrain.evaluate", "the skill card of a published library"),
    "render": ("pretrain.render", "pictures and films of skills"),
    "quantize": ("pretrain.quantize", "a library's policy in int8, as its next version"),
    "hlc": ("hlc.train", "a controller on top of a published library"),
    "hlc-plan": ("hlc.plan", "a task planned by sampling skills, without training"),
    "hlc-compose": ("hlc.compose", "a state machine over controllers and planned tasks"),
    "hlc-amp": ("hlc.amp", "AMP on a task from scratch, the baseline without skills"),
    "hlc-evaluate": ("hlc.evaluate", "returns of a published controller"),
    "serve": ("serving", "the HTTP and WebSocket service"),
    "keys": ("serving.keys", "API keys of the service"),
    "skills": ("skills_store", "list, show, alias, copy and verify what is published"),
}
WIDTH = max(map(len, COMMANDS))


def main() -> int:
    command = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if command in ("-h", "--help"):
        print(
            __doc__,
            *(f"  {name:<{WIDTH}}  {text}" for name, (_, text) in COMMANDS.items()),
            sep="\n",
        )
        return 0
    if command not in COMMANDS:
        print(
            f"repertoire: no command {command!r}; there are: {', '.join(COMMANDS)}", file=sys.stderr
        )
        return 2
    module = COMMANDS[command][0]
    if find_spec(module.partition(".")[0]) is None:
        print(
            f"repertoire: {command} needs the package {module.partition('.')[0]!r}", file=sys.stderr
        )
        return 2
    sys.argv = [f"repertoire {command}", *sys.argv[2:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
