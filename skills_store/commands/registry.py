"""The subcommands of `skills`: a new one is a file in this folder and a line here.

Its module has `add_arguments(parser)`, and `run(store, args)`, which prints and returns the exit
status.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Protocol, cast

from skills_store.store import Store

COMMANDS = {  # name: (module, help)
    "ls": ("ls", "versions, newest first"),
    "show": ("show", "one version: graphs, card, lineage"),
    "search": ("search", "versions by a word, by kind, and by the figures of their cards"),
    "diff": ("diff", "what sets two versions apart: graphs, body, card, config, clips, files"),
    "log": ("log", "every move of every alias, every rollback and deletion"),
    "verify": ("verify", "read and hash everything"),
    "schema": ("schema", "the JSON Schema of manifests"),
    "alias": ("alias", "point an alias at a version; without NUMBER, list the aliases"),
    "rollback": (
        "rollback",
        "point an alias back at what it meant before; again, and it goes further back",
    ),
    "protect": (
        "protect",
        "refuse to move an alias to a version whose card is worse; prod is, from its first move",
    ),
    "delete": ("delete", "take a version away for good; refused while anything refers to it"),
    "lease": (
        "lease",
        "keep a version from being deleted for a while; without REF, list the leases",
    ),
    "release": ("release", "end a lease"),
    "gc": ("gc", "free the files that nothing has needed for a while"),
    "push": ("push", "copy a version, and its parent, to another store"),
    "pull": ("pull", "copy a version, and its parent, from another store"),
    "export": ("export", "write a version as a folder for other tools"),
    "import": (
        "import_folder",
        "publish what `export --onnx`, `export --oci` or `oras pull` wrote",
    ),
    "import-checkpoint": (
        "import_checkpoint",
        "publish the networks of an ASE or MimicKit checkpoint",
    ),
    "keygen": ("keygen", "make an Ed25519 key pair to sign with"),
    "sign": ("sign", "sign a version with a private key"),
    "verify-signature": (
        "verify_signature",
        "which trusted keys signed a version; status 1 without one",
    ),
}


class Command(Protocol):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, store: Store, args: argparse.Namespace) -> int: ...


def load_command(name: str) -> Command:
    """The module of a subcommand."""
    module, _ = COMMANDS[name]
    return cast(Command, import_module(f"{__package__}.{module}"))
