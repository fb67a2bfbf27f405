"""`skills import-checkpoint`: publish the networks of an ASE or MimicKit checkpoint."""

from __future__ import annotations

import argparse

from skills_store.catalog.text import shorten_digest
from skills_store.commands import output
from skills_store.commands.arguments import parse_path, parse_words
from skills_store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=parse_path, metavar="FILE", help="ASE .pth or MimicKit model.pt"
    )
    parser.add_argument("--name", required=True, metavar="NAME", help="the skill's name here")
    parser.add_argument(
        "--licence",
        type=parse_words,
        required=True,
        metavar="TEXT",
        help="of these weights; the file does not say",
    )
    parser.add_argument(
        "--mjcf", type=parse_path, metavar="FILE", help="the body that it was trained on"
    )


def run(store: Store, args: argparse.Namespace) -> int:
    # It needs onnx and torch, which are extras.
    from skills_store.checkpoints.importer import (
        publish,
    )

    version = publish(store, args.file, args.name, args.licence, args.mjcf)
    observations = version.manifest.observations
    character = version.manifest.character.name
    line = (
        f"{version.ref}  {shorten_digest(version.digest)}  {observations} observations, {character}"
    )
    value = output.identify(version) | {"observations": observations, "character": character}
    return output.print_result(args, line, value)
