"""Commands by which versions travel: push, pull, export, import, import-checkpoint. Prints; decides nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing

from skills_store.catalog.text import shorten_digest
from skills_store.commands import output
from skills_store.commands.arguments import path, place, words
from skills_store.commands.meter import Meter
from skills_store.open import open_store
from skills_store.store import Store
from skills_store.transfer.copy import copy
from skills_store.transfer.formats import EXPORTS, export, import_folder

FORMS = {
    "onnx": "files, manifest.json and README.md",
    "oci": "OCI image layout, for oras and skopeo",
    "triton": "Triton model repository",
}


def push(store: Store, args: argparse.Namespace) -> int:
    return _copy(args, store, open_store(args.to))


def pull(store: Store, args: argparse.Namespace) -> int:
    return _copy(args, open_store(args.origin), store)


def export_version(store: Store, args: argparse.Namespace) -> int:
    form = next(name for name in EXPORTS if getattr(args, name))
    directory = getattr(args, form)
    with closing(Meter()) as meter:
        version = export(store, args.ref, form, directory, meter)
    told = output.identify(version) | {"format": form, "directory": str(directory)}
    return output.print_result(args, f"{version.ref} -> {directory}", told)


def import_version(store: Store, args: argparse.Namespace) -> int:
    version, new = import_folder(store, args.directory)
    state = "imported" if new else "is here already"
    text = f"{version.ref}  {shorten_digest(version.digest)}  {state}"
    return output.print_result(args, text, output.identify(version) | {"new": new})


def import_checkpoint(store: Store, args: argparse.Namespace) -> int:
    from skills_store.checkpoints.importer import publish  # onnx and torch: only those who import need them

    version = publish(store, args.file, args.name, args.licence, args.mjcf)
    manifest = version.manifest
    text = f"{version.ref}  {shorten_digest(version.digest)}  {manifest.observations} observations, {manifest.character.name}"
    told = output.identify(version) | {"observations": manifest.observations, "character": manifest.character.name}
    return output.print_result(args, text, told)


def describe(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add each command and its arguments; `command` makes its parser."""
    there = command("push", "copy a version, and its parent, to another store")
    there.add_argument("ref", metavar="REF", help="humanoid@7")
    there.add_argument("--to", type=place, required=True, metavar="STORE")
    there.set_defaults(run=push)
    here = command("pull", "copy a version, and its parent, from another store")
    here.add_argument("ref", metavar="REF", help="humanoid@7")
    here.add_argument("--from", type=place, required=True, metavar="STORE", dest="origin")
    here.set_defaults(run=pull)
    out = command("export", "write a version as a folder for other tools")
    out.add_argument("ref", metavar="REF", help="humanoid@7")
    forms = out.add_mutually_exclusive_group(required=True)
    for name in EXPORTS:
        forms.add_argument(f"--{name}", type=path, metavar="DIR", help=f"a new or empty folder: {FORMS[name]}")
    out.set_defaults(run=export_version)
    back = command("import", "publish what `export --onnx`, `export --oci` or `oras pull` wrote")
    back.add_argument("directory", type=path, metavar="DIR")
    back.set_defaults(run=import_version)
    foreign = command("import-checkpoint", "publish the networks of an ASE or MimicKit checkpoint")
    foreign.add_argument("file", type=path, metavar="FILE", help="ASE .pth or MimicKit model.pt")
    foreign.add_argument("--name", required=True, metavar="NAME", help="the skill's name here")
    foreign.add_argument(
        "--licence", type=words, required=True, metavar="TEXT", help="of these weights; the file does not say"
    )
    foreign.add_argument("--mjcf", type=path, metavar="FILE", help="the body that it was trained on, to go with it")
    foreign.set_defaults(run=import_checkpoint)


def _copy(args: argparse.Namespace, source: Store, target: Store) -> int:
    with closing(Meter()) as meter:
        copied = copy(args.ref, source, target, meter)
    lines = [
        f"{each.version.ref}  {shorten_digest(each.version.digest)}  "
        + (f"copied to {target.where}" if each.new else f"is in {target.where} already")
        for each in copied
    ]
    return output.print_result(
        args, "\n".join(lines), [output.identify(each.version) | {"new": each.new} for each in copied]
    )
