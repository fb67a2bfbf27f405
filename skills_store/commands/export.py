"""`skills export`: write a version as a folder for other tools."""

from __future__ import annotations

import argparse
from contextlib import closing

from skills_store.commands import output
from skills_store.commands.arguments import parse_path
from skills_store.commands.meter import Meter
from skills_store.store import Store
from skills_store.transfer.formats import EXPORTS, export

CONTENTS = {
    "onnx": "files, manifest.json and README.md",
    "oci": "OCI image layout, for oras and skopeo",
    "triton": "Triton model repository",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="humanoid@7")
    formats = parser.add_mutually_exclusive_group(required=True)
    for name in EXPORTS:
        text = f"a new or empty folder: {CONTENTS[name]}"
        formats.add_argument(f"--{name}", type=parse_path, metavar="DIR", help=text)


def run(store: Store, args: argparse.Namespace) -> int:
    form = next(name for name in EXPORTS if getattr(args, name))
    directory = getattr(args, form)
    with closing(Meter()) as meter:
        version = export(store, args.ref, form, directory, meter)
    value = output.identify(version) | {"format": form, "directory": str(directory)}
    return output.print_result(args, f"{version.ref} -> {directory}", value)
