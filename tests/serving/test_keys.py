"""API keys: scopes, rates, secrets kept out of files and logs, changes without a restart."""

import json
import re
import time
from contextlib import closing

import pytest

import serving.keys as program
from serving.access import keys
from serving.access.guard import Bucket
from serving.settings import Settings
from tests.serving.local import Local, problem, skill_rows, state_rows

STATE = state_rows(1)[0].tolist()
Z = skill_rows(1)[0].tolist()
BODY = {"state": STATE, "z": Z}
ROUTES = {  # method and path -> the scope that opens it; None: any key; "": no key
    ("POST", "/act"): "act",
    ("POST", "/controllers/reach/act"): "act",
    ("POST", "/interpolate"): "act",
    ("POST", "/plan"): "act",
    ("POST", "/encode"): "encode",
    ("POST", "/v2/models/humanoid/infer"): "act",
    ("POST", "/v2/models/humanoid/versions/1/infer"): "act",
    ("POST", "/v2/models/humanoid.encoder/infer"): "encode",
    ("POST", "/v2/repository/index"): None,
    ("GET", "/metrics"): "admin",
    ("GET", "/skills"): None,
    ("GET", "/skills/humanoid"): None,
    ("GET", "/skills/humanoid/latents"): None,
    ("GET", "/controllers"): None,
    ("GET", "/controllers/reach"): None,
    ("GET", "/v2"): None,
    ("GET", "/v2/models/humanoid"): None,
    ("GET", "/docs"): None,
    ("GET", "/openapi.json"): None,
    ("GET", "/nothing/here"): None,
    ("GET", "/healthz"): "",
    ("GET", "/readyz"): "",
    ("GET", "/v2/health/live"): "",
    ("GET", "/v2/health/ready"): "",
}

RATE = 0.01  # 1/s: one request in 100 s, however slow the machine


@pytest.fixture(scope="module")
def keyed(shared, tmp_path_factory):
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    tokens = {}
    made = []
    for scope in keys.SCOPES:
        tokens[scope], key = keys.make_key(f"only-{scope}", [scope])
        made.append(key)
    tokens["slow"], slow = keys.make_key("slow", ["act"], rate=RATE)
    tokens["once"], once = keys.make_key("once", ["act"], rate=RATE)
    keys.write(file, [*made, slow, once])
    local = Local(Settings(store=shared.root, keys=file, refresh=3600))
    yield local, tokens, file
    local.close()


def send(local, method, path, token=None):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if method == "GET":
        return local.get(path, headers=headers)
    return local.post(path, json=BODY, headers=headers)


@pytest.mark.parametrize(("route", "scope"), ROUTES.items(), ids=str)
def test_every_route_requires_a_key_with_its_scope(keyed, route, scope):
    (local, tokens, _) = keyed
    (method, path) = route
    assert send(local, method, path).status_code == (401 if scope != "" else 200)
    for own in keys.SCOPES:
        code = send(local, method, path, tokens[own]).status_code
        assert (code == 403) == (scope not in ("", None, own)), (own, code)


def test_a_root_path_of_the_server_changes_no_scope(keyed, shared):
    _, tokens, file = keyed
    settings = Settings(store=shared.root, keys=file, refresh=3600)
    with closing(Local(settings, root_path="/rep")) as local:
        for (method, path), scope in ROUTES.items():
            below = f"/rep{path}"
            assert send(local, method, below).status_code == (401 if scope != "" else 200)
            for own in keys.SCOPES:
                code = send(local, method, below, tokens[own]).status_code
                assert (code == 403) == (scope not in ("", None, own)), (path, own, code)
                assert code != 500, path


@pytest.mark.parametrize("escaped", ["%0A", "%0D", "%09", "%00", "%7F"])
def test_a_path_with_a_control_character_reaches_no_route(keyed, escaped):
    local, tokens, _ = keyed
    for (method, path), scope in ROUTES.items():
        for place in (f"{path}{escaped}", f"/{escaped}{path[1:]}"):
            response = send(local, method, place, tokens[scope or "act"])
            assert response.status_code == 404, place
            assert "control characters" in response.text


def test_scope_table_covers_every_route(keyed):
    listed = {path for _, path in ROUTES}
    for path in keyed[0].gateway.api.openapi()["paths"]:
        like = re.compile(re.sub(r"\{.*?\}", "[^/]+", path) + "$")
        known = ("config", "ready", "versions/{version}")  # /v2: described like /v2/models/{model}
        assert any(like.match(one) for one in listed) or path.endswith(known), path


WRONG = [
    "x",
    "only-act",
    "only-act.",
    "only-act.wrong",
    ".",
    "nobody.x",
    "only-act.\xff",
    "a" * 10_000,
]


@pytest.mark.parametrize("token", WRONG, ids=range(len(WRONG)))
def test_wrong_key_is_refused_and_not_echoed(keyed, token):
    local, _, _ = keyed
    response = local.post(
        "/act", json=BODY, headers={b"authorization": b"Bearer " + token.encode("latin-1")}
    )
    problem(response, 401, "wrong_key", "authorization")
    assert response.headers["www-authenticate"] == "Bearer"
    assert token not in response.text or len(token) < 3


def test_rate_limited_key_gets_429_with_retry_after(keyed):
    local, tokens, _ = keyed
    assert send(local, "POST", "/act", tokens["slow"]).status_code == 200
    refused = send(local, "POST", "/act", tokens["slow"])
    problem(refused, 429, "rate_limited")
    assert 1 / RATE - 50 < int(refused.headers["retry-after"]) <= 1 / RATE
    assert (
        send(local, "POST", "/act", tokens["act"]).status_code == 200
    )  # another key is not affected


def test_bucket_refills_at_its_rate_up_to_one_second():
    bucket = Bucket(10, 10, 0.0)
    assert sum(bucket.take(0.0) == 0 for _ in range(20)) == 10
    assert bucket.take(0.0) == pytest.approx(0.1)
    assert sum(bucket.take(0.55) == 0 for _ in range(20)) == 5
    assert sum(bucket.take(1000.0) == 0 for _ in range(20)) == 10


def test_refusal_delay_grows_with_refusals_up_to_1_s():
    bucket = Bucket(10, 0, 0.0)
    holds = []
    for _ in range(30):
        assert bucket.take(0.0) > 0
        holds.append(bucket.hold)
    assert holds[:3] == pytest.approx([0, 0.1, 0.2])
    assert holds == sorted(holds)
    assert holds[-1] == 1  # s, at most
    bucket = Bucket(10, 0, 0.0)
    assert (
        max(bucket.hold for i in range(1, 200) if bucket.take(i / 11)) < 0.1
    )  # a tenth over the rate: refused without delay
    assert Bucket(0.01, 0, 0.0, refused=2).hold == 1


def test_repeated_refusals_are_delayed(keyed):
    local, tokens, _ = keyed
    started = time.monotonic()
    statuses = [send(local, "POST", "/act", tokens["once"]).status_code for _ in range(3)]
    assert statuses == [200, 429, 429]
    assert time.monotonic() - started > 0.5


def test_no_secret_is_in_the_key_file_the_log_or_the_metrics(keyed, caplog):
    local, tokens, file = keyed
    with caplog.at_level(0):
        for token in tokens.values():
            send(local, "POST", "/act", token)
            send(local, "POST", "/act", token[:-1])
    seen = file.read_text() + caplog.text + send(local, "GET", "/metrics", tokens["admin"]).text
    for token in tokens.values():
        assert token.partition(".")[2] not in seen
    assert file.stat().st_mode & 0o077 == 0


def test_key_is_added_and_removed_without_a_restart(shared, tmp_path):
    file = tmp_path / "keys.json"
    first, kept = keys.make_key("first", ["act"])
    keys.write(file, [kept])
    local = Local(Settings(store=shared.root, keys=file, refresh=3600))
    second, new = keys.make_key("second", ["act"])
    assert send(local, "POST", "/act", second).status_code == 401
    keys.write(file, [new])
    local.refresh()
    assert [send(local, "POST", "/act", token).status_code for token in (first, second)] == [
        401,
        200,
    ]
    file.write_text("{")  # damaged: the last valid keys stay
    local.refresh()
    assert send(local, "POST", "/act", second).status_code == 200
    local.close()


def test_add_command_prints_the_key_and_stores_its_digest(tmp_path, monkeypatch, capsys):
    file = tmp_path / "keys.json"

    def run(*words):
        monkeypatch.setattr("sys.argv", ["keys", "--file", str(file), *words])
        code = program.main()
        return code, capsys.readouterr()

    code, captured = run("add", "game", "act", "encode", "--rate", "5")
    token = captured.out.strip()
    assert code == 0
    made = keys.match(token, {key.name: key for key in keys.read(file).keys})
    assert made is not None
    assert made.scopes == ("act", "encode")
    assert run("ls")[1].out == "game\tact,encode\t5.0\n"
    code, captured = run("add", "game", "act")
    assert (code, captured.err.count("\n")) == (2, 1)
    error = run("add", "x", "act", "--rate=-3")[1].err
    assert "rate: Input should be greater than 0, got -3.0" in error
    assert run("rm", "nobody")[0] == 2
    assert run("rm", "game")[0] == 0
    assert json.loads(file.read_text()) == {"keys": []}


def test_hosts_other_than_loopback_need_keys(tmp_path):
    for host in ("127.0.0.1", "::1", "localhost"):
        Settings(host=host)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(ValueError, match="keys are needed"):
            Settings(host=host)
        Settings(host=host, keys=tmp_path / "keys.json")


def test_wrong_secret_and_unknown_key_take_similar_time():
    token, key = keys.make_key("one", ["act"])
    assert keys.match(token, {"one": key}) is key

    def seconds(wrong):
        started = time.perf_counter()
        for _ in range(300):
            assert keys.match(wrong, {"one": key}) is None
        return time.perf_counter() - started

    times = [(seconds("one." + "x" * 43), seconds("two." + "x" * 43)) for _ in range(5)]
    assert min(a for a, _ in times) < 3 * min(b for _, b in times) < 9 * min(a for a, _ in times)


def test_two_keys_of_one_name_are_refused(tmp_path):
    key = keys.make_key("game", ["act"])[1]
    with pytest.raises(ValueError, match="two keys have the name 'game'"):
        keys.write(tmp_path / "keys.json", [key, key])
    assert not list(tmp_path.iterdir())


def test_without_keys_only_loopback_addresses_are_answered(shared):
    """Another server than `python -m serving` may listen on any address."""
    for address, expected in (("192.0.2.1", 403), ("127.0.0.1", 200), ("::1", 200)):
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/skills",
            "raw_path": b"/skills",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            "server": (address, 8000),
        }
        with closing(Local(Settings(store=shared.root, refresh=3600))) as local:
            assert local.call(scope) == expected
            assert local.call(scope | {"path": "/healthz", "raw_path": b"/healthz"}) == 200
