"""`skills schema`: the JSON Schema of manifests."""

from __future__ import annotations

import argparse

from skills_store.commands import output
from skills_store.manifest import Manifest
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(store: Store, args: argparse.Namespace) -> int:
    print(output.encode_json(Manifest.model_json_schema()))
    return 0
