"""Motion clips before training: check, preview and convert them, make a recipe of them.

python -m pretrain.motion check everyday              a line per clip: measures, verdict and advice
python -m pretrain.motion preview takes/ -o takes.png a contact sheet
python -m pretrain.motion preview takes/ --browser    a page that plays them (needs viser)
python -m pretrain.motion convert takes/ clips/       any format -> .npz on our humanoid, 30 Hz
python -m pretrain.motion recipe clips/ > mine.yaml   a dataset recipe with even weights

A PATH is a file, a folder or, for check and preview, a recipe (by name or .yaml).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from skills_store.processors import count_processors
from skills_store.standard_output import discard_output

COLUMNS = """\
columns (--json has more measures, in SI units and radians):
  s         duration, s
  ahead     mean velocity along the heading, m/s
  aside     mean velocity to the left, m/s
  turn      mean turn to the left, rad/s
  limits %  share of frames with a hinge past its range
  sunk cm   depth of the deepest point in the ground
  float cm  height of a standing sole above the ground, 95th percentile
  skate cm  way that a foot slides in its worst contact
  jump m/s  speed of the fastest body
  seam      turn of the joint that differs most between last and first frame, rad
  fall      vertical acceleration of the center of mass in flight, m/s^2; - without a flight
  hands m   lowest and highest height of a hand
  verdict   good; usable: inspect or edit it; bad: cannot be learned
"""
FILES = "a file or a folder"
CLIPS = f"{FILES}, or a recipe (by name or .yaml)"
ROWS = 40  # of a contact sheet
INTERRUPTED = 130  # the exit status after Ctrl-C
BROKEN_PIPE = 141  # the exit status where stdout was closed, as after SIGPIPE: not all was done


def check(args: argparse.Namespace) -> int:
    """0 where every clip can be learned from, 1 where one is bad."""
    from pretrain.motion.check import check as verdicts_of
    from pretrain.motion.check import table, to_json
    from pretrain.motion.licences import describe_unknown
    from pretrain.motion.verdict import BAD
    from skills_store import places

    cache_folder = places.verdicts() if args.keep else None
    verdicts = []
    try:
        for verdict in verdicts_of(args.paths, args.character, args.workers, cache_folder):
            verdicts.append(verdict)
            if sys.stderr.isatty():
                print(f"\r{len(verdicts)} clips", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        left = "; the same command goes on from there" if args.keep else ""
        print(f"stopped after {len(verdicts)} clips{left}", file=sys.stderr)
        return INTERRUPTED
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    print(to_json(verdicts) if args.json else table(verdicts))
    for line in describe_unknown({verdict.name: verdict.licence for verdict in verdicts}):
        print(f"warning: {line}", file=sys.stderr)
    return int(any(verdict.verdict == BAD for verdict in verdicts))


def preview(args: argparse.Namespace) -> int:
    """A contact sheet of all clips, or a page that plays them."""
    from pretrain.motion.preview import contact_sheet  # before mujoco: it sets MUJOCO_GL
    from pretrain.motion.browser import ClipViewer  # isort: skip
    from pretrain.motion.files import load_clips  # isort: skip

    clips = [clip for path in args.paths for clip in load_clips(path, args.character)]
    if args.browser:
        viewer = ClipViewer(clips, args.port)
        print(f"{len(clips)} clips on {viewer.url}, until Ctrl-C", flush=True)
        try:
            viewer.run()
        except KeyboardInterrupt:
            viewer.server.stop()
        return 0
    contact_sheet(clips[:ROWS], args.frames).save(args.out)
    left = f", the first {ROWS} of {len(clips)}" if len(clips) > ROWS else ""
    print(f"{args.out}: {min(len(clips), ROWS)} clips{left}")
    return 0


def convert(args: argparse.Namespace) -> int:
    """A target is kept where its inputs are as they were, so that an interrupted run continues
    where it was, and, with a line on stderr, where `convert` is not known to have written it."""
    from pretrain.motion.clip import ClipError
    from pretrain.motion.conversion import Conversion
    from pretrain.motion.files import find_files, place_converted

    folder = Path(args.out)
    targets = place_converted(find_files(args.path), folder)
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for file, target in targets.items():
        conversion = Conversion(file, target, args.character, args.source, args.licence)
        try:
            if not args.force and (obstacle := conversion.find_obstacle()):
                print(f"{target}: kept, for {obstacle}; --force replaces it", file=sys.stderr)
                continue
            if not args.force and conversion.is_done():
                continue
            clip = conversion.read()
        except (ClipError, OSError) as error:
            failed += 1
            print(error, file=sys.stderr)
            continue
        conversion.write(clip)
        for line in clip.warnings:
            print(line, file=sys.stderr)
        print(f"{target}: {len(clip)} frames")
    return int(failed > 0)


def recipe(args: argparse.Namespace) -> int:
    """All clips are drawn equally often, whatever their length."""
    import yaml

    from pretrain.motion.files import find_files, list_motions, states_licence

    files = find_files(args.path)
    motions = list_motions(files, Path(args.relative_to))
    if args.licence:
        for file, motion in zip(files, motions, strict=True):
            if not states_licence(file, args.character):
                motion["licence"] = args.licence
    document = {
        "name": args.name or Path(args.path).resolve().stem,
        "character": args.character,
        "motions": [{"weight": 1.0, **motion} for motion in motions],
    }
    print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="")
    return 0


def at_least_1(text: str) -> int:
    """Parse a whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number of 1 or more")
    return int(text)


def add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "check",
        help="measures, verdict and advice, a line a clip",
        epilog=COLUMNS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("paths", nargs="+", metavar="PATH", help=CLIPS)
    command.add_argument("--json", action="store_true", help="all measures, as a list of objects")
    command.add_argument("--workers", type=int, default=count_processors(), help="processes")
    command.add_argument(
        "--no-keep",
        dest="keep",
        action="store_false",
        help="verdicts on files are neither kept for the next check nor taken from the last",
    )
    command.set_defaults(run=check)


def add_preview(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("preview", help="a contact sheet, or a page that plays them")
    command.add_argument("paths", nargs="+", metavar="PATH", help=CLIPS)
    command.add_argument("-o", "--out", default="preview.png", help="a .png")
    command.add_argument("--frames", type=at_least_1, default=12, help="of a clip")
    command.add_argument("--browser", action="store_true", help="play them in the browser (viser)")
    command.add_argument("--port", type=int, default=8080, help="of the page; a free one if taken")
    command.set_defaults(run=preview)


def add_convert(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("convert", help="any format -> .npz on our humanoid")
    command.add_argument("path", metavar="PATH", help=FILES)
    command.add_argument("out", metavar="FOLDER", help="of the .npz; created where it is missing")
    command.add_argument("--source", default="", help="where the captures are from, kept in each")
    command.add_argument("--licence", default="", help="an SPDX expression, kept in each file")
    command.add_argument("--force", action="store_true", help="also files that are up to date")
    command.set_defaults(run=convert)


def add_recipe(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("recipe", help="a dataset recipe of a folder, on stdout")
    command.add_argument("path", metavar="FOLDER", help=FILES)
    command.add_argument("--name", default="", help="of the recipe; the folder's where left out")
    command.add_argument(
        "--licence", default="", help="of every clip, where its file does not say it"
    )
    command.add_argument(
        "--relative-to", default=".", metavar="FOLDER", help="where the recipe will stand"
    )
    command.set_defaults(run=recipe)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        "pretrain.motion", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for add_command in (add_check, add_preview, add_convert, add_recipe):
        add_command(commands)
    for command in commands.choices.values():
        command.add_argument("--character", default="humanoid", help="whose skeleton clips are on")
    return top


def main(arguments: list[str]) -> int:
    """The exit status; an error is one line on stderr. A closed stdout, as in `... | head`, is
    none."""
    try:
        return _run(arguments)
    except BrokenPipeError:
        discard_output()
        return BROKEN_PIPE
    except (ValueError, OSError, KeyError, ImportError) as error:
        print(error.args[0] if isinstance(error, KeyError) else error, file=sys.stderr)
        return 2


def _run(arguments: list[str]) -> int:
    try:
        args = parser().parse_args(arguments)
        return args.run(args)
    finally:
        print(end="", flush=True)  # --help exits in parse_args, maybe into a closed pipe


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
