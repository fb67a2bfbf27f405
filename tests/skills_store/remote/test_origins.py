"""A store behaves alike on a disk, in memory and in the bucket of an S3 server.

The server is a process of its own on loopback; its tests need moto and obstore.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import TypeVar

import numpy as np
import pytest

from serving.settings import Settings
from skills_store.__main__ import main
from skills_store.errors import (
    AppendOnlyStore,
    CorruptBlob,
    GateRefusal,
    NotAStore,
    NumberConflict,
    Regression,
    StoreError,
    UnconfirmedWrite,
    UnknownAlias,
    UnknownSkill,
    UnknownVersion,
    UnreachableOrigin,
    UnsupportedLayout,
)
from skills_store.open import cache_folder, open_store
from skills_store.remote.origin import Origin
from skills_store.runtime.library import Controller, SkillLibrary
from skills_store.store import Store
from skills_store.transfer.copy import copy
from tests import tiny
from tests.serving.local import Local, skill_rows, state_rows

Result = TypeVar("Result")
Machine = Callable[[], Store]  # another machine each time: the same store, and nothing cached


class MemoryOrigin:
    """An origin in memory, with all methods that one needs."""

    url = "memory://"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.lock = Lock()

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in list(self.objects) if key.startswith(prefix))

    def read(self, key: str) -> bytes:
        return self.objects[key]

    def create(self, key: str, data: bytes) -> bool:
        with self.lock:
            return key not in self.objects and self.objects.setdefault(key, data) == data


@contextlib.contextmanager
def s3_server() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(Path(__file__).with_name("s3.py")), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/moto-api/", timeout=1).close()
                break
            time.sleep(0.1)
        yield url, process
    finally:
        process.kill()
        process.wait()


def bucket_at(url: str) -> str:
    name = f"b{uuid.uuid4().hex[:12]}"
    urllib.request.urlopen(
        urllib.request.Request(f"{url}/{name}", method="PUT"), timeout=30
    ).close()
    return name


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    pytest.importorskip("obstore", reason="repertoire[remote] is not installed")
    pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")
    with s3_server() as (url, _):
        yield url


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Sets credentials, the given endpoint and a cache folder of this test."""

    def at(endpoint: str) -> None:
        for name, value in {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "REPERTOIRE_CACHE": str(tmp_path / "caches"),
        }.items():
            monkeypatch.setenv(name, value)

    return at


@pytest.fixture(params=["disk", "memory", "s3"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    if request.param == "disk":
        return lambda: Store(tmp_path / "store")
    if request.param == "memory":
        origin = MemoryOrigin()
        return lambda: Store(tmp_path / uuid.uuid4().hex, origin)
    server = request.getfixturevalue("server")
    request.getfixturevalue("cloud")(server)
    url = f"s3://{bucket_at(server)}/some/prefix"

    def fresh() -> Store:
        # monkeypatch restores it
        os.environ["REPERTOIRE_CACHE"] = str(tmp_path / uuid.uuid4().hex)
        return open_store(url)

    return fresh


def test_published_version_is_visible_to_other_machines(machine: Machine) -> None:
    published = tiny.publish_tiny(machine())
    for found in (
        machine().resolve("humanoid"),
        machine().resolve("humanoid@1"),
        machine().resolve(published.pinned),
    ):
        assert found == published
    store = machine()
    assert store.names() == ("humanoid",)
    assert {
        file: store.read(published, file) for file in published.manifest.files
    } == tiny.skills_files()
    assert store.manifest_bytes(published) == machine().manifest_bytes(published)
    assert machine().verify() == ()


def test_empty_store_reports_no_skills(machine: Machine) -> None:
    assert machine().names() == ()
    with pytest.raises(NotAStore, match="nothing was ever published there"):
        machine().verify()  # a mistyped name is not reported as intact
    with pytest.raises(UnknownSkill, match="there are no skills"):
        machine().resolve("humanoid")


def test_unknown_things_list_what_exists(machine: Machine) -> None:
    tiny.publish_tiny(machine())
    machine().alias("humanoid", "prod", 1)
    with pytest.raises(UnknownSkill, match="did you mean 'humanoid'"):
        machine().resolve("humanid")
    with pytest.raises(UnknownVersion, match="there are: 1, prod=1"):
        machine().resolve("humanoid@9")
    with pytest.raises(UnknownAlias, match="did you mean 'prod'"):
        machine().resolve("humanoid@prd")


def test_gate_refusal_publishes_nothing(machine: Machine) -> None:
    files = tiny.skills_files() | {"policy.onnx": tiny.policy().replace(b"Tanh", b"None")}
    with pytest.raises(GateRefusal):
        machine().publish(tiny.skills_manifest(), files)
    assert machine().names() == ()


def test_publishers_at_once_take_gap_free_numbers(machine: Machine) -> None:
    stores = [machine() for _ in range(4)]

    def publish_three(seed: int) -> None:
        for _ in range(3):
            tiny.publish_tiny(stores[seed], seed=seed)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(publish_three, range(4)))
    versions = machine().versions("humanoid")
    assert [v.number for v in versions] == list(range(1, 13))
    assert len({v.digest for v in versions}) == 4
    for store in (*stores, machine()):
        assert [v.digest for v in store.versions("humanoid")] == [v.digest for v in versions]
        assert store.verify() == ()


def test_concurrent_alias_moves_are_all_logged(machine: Machine) -> None:
    for seed in range(2):
        tiny.publish_tiny(machine(), seed=seed)
    stores = [machine() for _ in range(4)]

    def move_five(writer: int) -> None:
        for step in range(5):
            stores[writer].alias(
                "humanoid", "canary", 1 + (writer + step) % 2, why=f"{writer} {step}"
            )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(move_five, range(4)))
    log = machine().log("humanoid")
    assert [move.rev for move in log] == list(range(1, 21))
    assert {move.why for move in log} == {
        f"{writer} {step}" for writer in range(4) for step in range(5)
    }
    assert [move.previous for move in log] == [None, *(move.number for move in log[:-1])]
    assert {store.resolve("humanoid@canary").number for store in (*stores, machine())} == {
        log[-1].number
    }
    assert machine().aliases("humanoid") == {"canary": log[-1].number}


def test_rollback_restores_the_previous_version(machine: Machine) -> None:
    for seed in range(2):
        tiny.publish_tiny(machine(), seed=seed)
    for number in (1, 2):
        machine().alias("humanoid", "prod", number)
    assert machine().rollback("humanoid", "prod", "falls").number == 1
    assert machine().resolve("humanoid@prod").number == 1
    assert [(move.number, move.undoes) for move in machine().log("humanoid")] == [
        (1, None),
        (2, None),
        (1, 2),
    ]


@pytest.mark.parametrize("alias", ["prod", "canary"])
def test_protected_alias_never_regresses_under_concurrent_moves(
    machine: Machine, alias: str
) -> None:
    files = tiny.skills_files()
    for survival in (0.6, 0.7, 0.8, 0.9):
        manifest = tiny.skills_manifest().model_copy(update={"card": {"survival": survival}})
        machine().publish(manifest, files)

    if alias != "prod":
        machine().alias("humanoid", alias, 1)
        machine().protect("humanoid", alias)

    def climb(store: Store) -> None:
        for number in (2, 1, 4, 3):
            with contextlib.suppress(Regression):
                store.alias("humanoid", alias, number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(climb, [machine() for _ in range(4)]))
    numbers = [move.number for move in machine().log("humanoid")]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 4


def test_copies_to_and_from_an_origin_are_equal(machine: Machine, tmp_path: Path) -> None:
    local = Store(tmp_path / "local")
    tiny.publish_tiny_controller(local, tiny.publish_tiny(local))
    assert [each.new for each in copy("reach", local, machine())] == [True, True]
    assert [each.new for each in copy("reach", local, machine())] == [False, False]
    back = Store(tmp_path / "back")
    copy("reach", machine(), back)
    assert back.resolve("reach") == local.resolve("reach") == machine().resolve("reach")
    assert back.verify() == machine().verify() == ()
    assert Controller.open(machine(), "reach").library.version.ref == "humanoid@1"


def test_a_taken_number_is_refused_with_both_digests(machine: Machine, tmp_path: Path) -> None:
    local = Store(tmp_path / "local")
    mine = tiny.publish_tiny(local, seed=1)
    theirs = tiny.publish_tiny(machine())
    with pytest.raises(NumberConflict) as refused:
        copy("humanoid@1", local, machine())
    assert mine.digest in str(refused.value)
    assert theirs.digest in str(refused.value)
    assert machine().versions("humanoid") == (theirs,)


def test_signatures_are_visible_to_other_machines(machine: Machine) -> None:
    version = tiny.publish_tiny(machine())
    for _ in range(2):
        machine().signatures("humanoid").add(version.digest, b"envelope")
    assert machine().signatures("humanoid").read_envelopes(version.digest) == (b"envelope",)
    assert machine().resolve("humanoid") == version


# Stores with an origin that fails, is damaged or cannot be reached.


class Failing:
    """An origin whose `stop`-th call takes effect but raises."""

    def __init__(self, origin: Origin, stop: int) -> None:
        self.url = origin.url
        self.origin = origin
        self.left = stop

    def keys(self, prefix: str) -> list[str]:
        return self._call(self.origin.keys, prefix)

    def read(self, key: str) -> bytes:
        return self._call(self.origin.read, key)

    def create(self, key: str, data: bytes) -> bool:
        return self._call(self.origin.create, key, data)

    def _call(self, call: Callable[..., Result], *args: object) -> Result:
        result = call(*args)
        self.left -= 1
        if self.left == 0:
            raise UnreachableOrigin(self.url, "the connection is lost")
        return result


@pytest.fixture
def origin() -> MemoryOrigin:
    return MemoryOrigin()


def test_connection_lost_during_publish_keeps_old_or_new_state(tmp_path: Path) -> None:
    seen = []
    for stop in range(1, 100):
        origin = MemoryOrigin()
        tiny.publish_tiny(Store(tmp_path / f"{stop}a", origin))
        cut = Store(tmp_path / f"{stop}b", Failing(origin, stop))
        try:
            tiny.publish_tiny(cut, seed=1)
            finished = True
        except (UnreachableOrigin, UnconfirmedWrite):
            finished = False
        other = Store(tmp_path / f"{stop}c", origin)
        assert other.verify() == ()
        seen.append(len(other.versions("humanoid")) - 1)
        again = Store(tmp_path / f"{stop}b", origin)  # the same cache, connected again
        assert tiny.publish_tiny(again, seed=1).number == seen[-1] + 2
        assert again.verify() == ()
        if finished:
            break
    assert finished
    assert seen == sorted(seen)
    assert set(seen) == {0, 1}  # one commit point


def test_bucket_refuses_delete_lease_and_gc(tmp_path: Path, origin: MemoryOrigin) -> None:
    store = Store(tmp_path / "1", origin)
    tiny.publish_tiny(store)
    before = dict(origin.objects)
    for refused, message in {
        lambda: store.delete("humanoid@1", "old"): "humanoid@1 is not deleted",
        lambda: store.lease("humanoid@1", 60): "humanoid@1 is not leased",
        store.gc: "nothing is swept",
    }.items():
        with pytest.raises(AppendOnlyStore, match=f"{message}: memory:// is append-only"):
            refused()
    assert origin.objects == before


def test_repeated_create_request_is_idempotent(tmp_path: Path) -> None:
    """As where the first reply is lost: the retry finds the key taken by the first try."""

    class Repeating(MemoryOrigin):
        def create(self, key: str, data: bytes) -> bool:
            super().create(key, data)
            return super().create(key, data)

    store = Store(tmp_path / "1", Repeating())
    for seed in range(2):
        assert tiny.publish_tiny(store, seed=seed).number == seed + 1
        store.alias("humanoid", "prod", seed + 1)
    assert [move.rev for move in store.log("humanoid")] == [1, 2]


def test_nothing_in_an_origin_is_ever_written_twice(tmp_path: Path, origin: MemoryOrigin) -> None:
    first = Store(tmp_path / "1", origin)
    second = Store(tmp_path / "2", origin)
    tiny.publish_tiny(first)
    before = dict(origin.objects)
    tiny.publish_tiny(second, seed=1)
    first.alias("humanoid", "prod", 2)
    second.alias("humanoid", "prod", 1)
    assert {key: origin.objects[key] for key in before} == before
    assert not origin.create("skills/humanoid/v/00000001.json", b"mine")


def test_cache_is_served_while_the_origin_is_unreachable(
    cloud: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("obstore", reason="repertoire[remote] is not installed")
    pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")
    with s3_server() as (url, process):
        cloud(url)
        store = open_store(f"s3://{bucket_at(url)}")
        tiny.publish_tiny(store)
        store.alias("humanoid", "prod", 1)
        SkillLibrary.open(store, "humanoid@prod")
        process.kill()
        process.wait()
        restarted = open_store(store.location)
        library = SkillLibrary.open(restarted, "humanoid@prod")
        assert library.act(np.zeros((1, tiny.STATE)), np.ones((1, tiny.LATENT))).shape == (
            1,
            len(tiny.JOINTS),
        )
        assert "going on with what is cached" in caplog.text
        for refused in (
            lambda: restarted.resolve("dancer"),
            lambda: tiny.publish_tiny(restarted, seed=1),
            lambda: restarted.alias("humanoid", "prod", 1),
        ):
            with pytest.raises(UnreachableOrigin, match=r"s3://.* cannot be reached"):
                refused()
        assert [v.number for v in restarted.versions("humanoid")] == [1]
        # Started without the network.
        service = Local(Settings(store=store.location, skill="humanoid@prod"))
        try:
            assert service.get("/readyz").json()["skill"]["version"] == 1
            body = {"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}
            assert len(service.post("/act", json=body).json()["targets"]) == len(tiny.JOINTS)
            unreachable = service.post("/act", json=body | {"skill": "dancer"})
            assert (unreachable.status_code, unreachable.json()["message"]) == (
                503,
                "the store cannot be reached",
            )
        finally:
            service.close()


def test_damaged_cache_is_fetched_again(tmp_path: Path, origin: MemoryOrigin) -> None:
    store = Store(tmp_path, origin)
    version = tiny.publish_tiny(store)
    path = (
        tmp_path
        / "blobs/sha256"
        / version.manifest.files["policy.onnx"].digest.removeprefix("sha256:")
    )
    path.chmod(0o644)
    path.write_bytes(b"rot")
    assert store.read(version, "policy.onnx") == tiny.policy()
    assert path.read_bytes() == tiny.policy()


@pytest.mark.parametrize(
    "content", [b"rot", tiny.policy(5), None], ids=["rot", "another graph", "gone"]
)
def test_a_damaged_origin_is_refused(
    tmp_path: Path, origin: MemoryOrigin, content: bytes | None
) -> None:
    version = tiny.publish_tiny(Store(tmp_path / "1", origin))
    key = f"blobs/sha256/{version.manifest.files['policy.onnx'].digest.removeprefix('sha256:')}"
    origin.objects.pop(key) if content is None else origin.objects.update({key: content})
    store = Store(tmp_path / "2", origin)
    with pytest.raises(CorruptBlob, match=r"policy\.onnx of humanoid@1.*memory://"):
        SkillLibrary.open(store, "humanoid")
    assert [fault.ref for fault in store.verify()] == ["humanoid@1"]


def test_verify_reads_the_origin_and_not_the_cache(tmp_path: Path, origin: MemoryOrigin) -> None:
    store = Store(tmp_path / "warm", origin)
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    store.alias("humanoid", "prod", 3)
    store.alias("humanoid", "prod", 2)
    version = store.resolve("humanoid@2")
    assert store.verify() == store.verify("humanoid@2") == ()
    key = f"blobs/sha256/{version.manifest.files['policy.onnx'].digest.removeprefix('sha256:')}"
    whole = dict(origin.objects)
    origin.objects[key] = b"rot"
    assert (
        [fault.ref for fault in store.verify()]
        == [fault.ref for fault in store.verify("humanoid@2")]
        == ["humanoid@2"]
    )
    # Also the last record or move.
    for lost in (
        "v/00000001.json",
        "v/00000003.json",
        "moves/prod/00000002.json",
    ):
        origin.objects = {**whole}
        del origin.objects[f"skills/humanoid/{lost}"]
        assert f"skills/humanoid/{lost}" in {fault.ref for fault in store.verify()}
    origin.objects = whole
    assert store.verify() == ()
    assert store.read(version, "policy.onnx") == tiny.policy(1)


@pytest.mark.parametrize("stop", range(1, 9))
def test_verify_of_an_unreachable_origin_is_refused(
    tmp_path: Path, origin: MemoryOrigin, stop: int
) -> None:
    tiny.publish_tiny(Store(tmp_path / "warm", origin))
    for ref in (None, "humanoid@1"):
        with pytest.raises(UnreachableOrigin):
            Store(tmp_path / "warm", Unreachable(origin, stop)).verify(ref)


class Unreachable(Failing):
    """An origin whose calls raise from the `stop`-th on."""

    def _call(self, call: Callable[..., Result], *args: object) -> Result:
        self.left = max(1, self.left)
        return super()._call(call, *args)


def test_invalid_listed_keys_are_ignored(tmp_path: Path, origin: MemoryOrigin) -> None:
    tiny.publish_tiny(Store(tmp_path / "1", origin))
    for key in (
        "skills/humanoid/v/00000002.json.swp",
        "skills/Humanoid/v/00000001.json",
        "skills/humanoid/alias/prod.json",
    ):
        origin.create(key, b"x")
    store = Store(tmp_path / "2", origin)
    assert store.names() == ("humanoid",)
    assert [v.number for v in store.versions("humanoid")] == [1]
    brought = {
        path.relative_to(store.root).as_posix() for path in store.root.rglob("*") if path.is_file()
    }
    assert {key for key in brought if not key.startswith("blobs/")} == {
        "layout.json",
        "skills/humanoid/v/00000001.json",
    }


def test_an_origin_of_a_later_layout_is_refused(tmp_path: Path, origin: MemoryOrigin) -> None:
    origin.create("layout.json", b'{"layout":9,"reader":9}')
    for call in (lambda store: store.resolve("humanoid"), tiny.publish_tiny):
        with pytest.raises(UnsupportedLayout, match="memory://"):
            call(Store(tmp_path / "cache", origin))
    assert origin.keys("") == ["layout.json"]


def test_commands_accept_the_url_of_a_store(
    server: str, cloud: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud(server)
    url = f"s3://{bucket_at(server)}/skills"
    local = Store(tmp_path / "local")
    tiny.publish_tiny(local)
    assert main(["--store", str(local.root), "push", "humanoid@1", "--to", url]) == 0
    assert f"copied to {url}" in capsys.readouterr().out
    assert main(["--store", url, "alias", "humanoid", "prod", "1"]) == 0
    assert main(["--store", url, "ls", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out.split("\n", 1)[1])["versions"]
    assert (row["ref"], row["aliases"]) == ("humanoid@1", ["latest", "prod"])
    assert main(["--store", url, "verify"]) == 0
    assert f"{url}: every byte is as published" in capsys.readouterr().out
    assert cache_folder(url).is_dir()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("s3://no-such-bucket-here", "s3://no-such-bucket-here cannot be reached"),
        ("ftp://host/store", "write a folder, or one of s3://, gs://, az://"),
    ],
)
def test_unreachable_origin_is_a_one_line_error(
    server: str,
    cloud: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    where: str,
    expected: str,
) -> None:
    cloud(server)
    assert main(["--store", where, "show", "humanoid"]) == 2
    out, err = capsys.readouterr()
    assert expected in err
    assert (out, err.count("\n")) == ("", 1)


def test_expired_credentials_are_one_line_and_nothing_is_lost(
    cloud: Callable[[str], None], server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud(server)
    url = f"s3://{bucket_at(server)}"
    tiny.publish_tiny(open_store(url))
    refusing = HTTPServer(("127.0.0.1", 0), Expired)
    thread = Thread(target=refusing.serve_forever)
    thread.start()
    try:
        cloud(f"http://127.0.0.1:{refusing.server_port}")
        with pytest.raises(UnreachableOrigin, match="ExpiredToken: The provided token has expired"):
            tiny.publish_tiny(open_store(url), seed=1)
        assert main(["--store", url, "alias", "humanoid", "prod", "1"]) == 2
        err = capsys.readouterr().err
        assert err.startswith(
            f"skills: {url} cannot be reached: ExpiredToken: The provided token has expired."
        )
        assert err.count("\n") == 1
    finally:
        refusing.shutdown()
        thread.join()
        refusing.server_close()
    cloud(server)
    assert [version.number for version in open_store(url).versions("humanoid")] == [1]
    assert open_store(url).verify() == ()


class Expired(BaseHTTPRequestHandler):
    """A server that refuses every request because the credentials have expired."""

    def respond(self) -> None:
        message = b"<Message>The provided token has expired.</Message>"
        body = b"<Error><Code>ExpiredToken</Code>" + message + b"</Error>"
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_POST = respond

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def test_url_without_obstore_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "skills_store.remote.bucket", raising=False)
    with pytest.raises(StoreError, match=r"repertoire\[remote\]"):
        open_store("s3://bucket")
