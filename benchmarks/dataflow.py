"""How much code a reader has to follow: files and functions that run.

    python -m benchmarks.dataflow            counts
    python -m benchmarks.dataflow --list     and the functions themselves

One `POST /act` from the socket to the graph and back, one iteration of training (preset=toy), and
the files that README names between a clip and an `/act` reply. Each path has run once before it is
counted."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import orjson
import uvicorn
from uvicorn.server import ServerState

from pretrain.assembly import build_training
from pretrain.config import PretrainConfig
from pretrain.overrides import load_config
from pretrain.rl.background import use_one_thread
from pretrain.train import finish_iteration
from pretrain.training_data import load_training_data
from serving.__main__ import make_config
from serving.app import make_gateway
from serving.models.resting_pose import example_latent, state_at_rest
from serving.settings import Settings
from skills_store.open import open_store
from skills_store.places import BUNDLED

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(f"{ROOT / package}/" for package in ("pretrain", "hlc", "serving", "skills_store"))
INNER = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<module>")


class Recorder:
    """Records the project's functions that run, also in threads started after it."""

    def __init__(self) -> None:
        self._codes: set[CodeType] | None = None
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    @contextmanager
    def record(self, codes: set[CodeType]) -> Iterator[None]:
        self._codes = codes
        try:
            yield
        finally:
            self._codes = None

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if self._codes is not None and event == "call" and code.co_filename.startswith(PACKAGES):
            self._codes.add(code)


def list_functions(codes: set[CodeType]) -> list[str]:
    """`path function` of each, sorted; comprehensions belong to their functions."""
    return sorted(
        f"{Path(code.co_filename).relative_to(ROOT)} {code.co_qualname}"
        for code in codes
        if code.co_name not in INNER
    )


def list_files(functions: list[str]) -> list[str]:
    return sorted({function.split(" ")[0] for function in functions})


async def follow_act(recorder: Recorder) -> list[str]:
    """The functions of one `POST /act` in JSON over a socket."""
    settings = Settings(store=BUNDLED)
    gateway = make_gateway(settings)
    config = make_config(gateway, settings)
    config.load()
    codes: set[CodeType] = set()
    async with gateway.api.router.lifespan_context(gateway.api):
        server = await asyncio.get_running_loop().create_server(
            lambda: make_protocol(config), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        request = make_request()
        await exchange(reader, writer, request)
        with recorder.record(codes):
            await exchange(reader, writer, request)
        writer.close()
        server.close()
    return list_functions(codes)


def make_protocol(config: uvicorn.Config) -> asyncio.Protocol:
    """One connection, as uvicorn's server makes it."""
    protocol: Any = config.http_protocol_class
    return protocol(config=config, server_state=ServerState(), app_state={})


def make_request() -> bytes:
    """A request of a character standing upright, with the z of a clip."""
    manifest = open_store(BUNDLED).resolve("humanoid@latest").manifest
    fields = {"state": state_at_rest(manifest)[0], "z": example_latent(manifest)[0]}
    body = orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY)
    head = f"POST /act HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> None:
    """Raises RuntimeError if the reply is not 200."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    await reader.readexactly(int(length[1]))


def follow_iteration(recorder: Recorder) -> list[str]:
    """The functions of one iteration of training, including its background learning."""
    cfg = load_config(PretrainConfig, "pretrain.conf", ["preset=toy"])
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    codes: set[CodeType] = set()
    with use_one_thread(), tempfile.TemporaryDirectory() as folder:
        training.iterate()
        training.background.finish_fits()
        with recorder.record(codes):
            training.iterate()
            finish_iteration(cfg, training, Path(folder))
            training.background.finish_fits()
    return list_functions(codes)


def find_named_files() -> list[Path]:
    """The files named in README's section on the flow of data, in order; a name is looked up beside
    the previous file and in the folders above.

    Raises FileNotFoundError for a missing file."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## How data flows")[2].partition("\n## ")[0]
    found: dict[Path, None] = {}
    folder = ROOT
    for name in re.findall(r"`([\w/]+\.py)`", section):
        places = (above / name for above in (folder, *folder.parents))
        place = next((place for place in places if place.is_file()), None)
        if place is None:
            raise FileNotFoundError(f"README.md, How data flows: no {name} in or above {folder}")
        found[place] = None
        folder = place.parent
    return list(found)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="the functions, too")
    chosen = parser.parse_args(arguments)
    recorder = Recorder()
    paths = {
        "POST /act": asyncio.run(follow_act(recorder)),
        "training iteration": follow_iteration(recorder),
    }
    for name, functions in paths.items():
        print(f"{name}: {len(list_files(functions))} files, {len(functions)} functions")
        if chosen.list:
            print("\n".join(f"  {function}" for function in functions))
    named = find_named_files()
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in named)
    print(f"clip to /act, as README names it: {len(named)} files, {lines:,} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
