"""The `skills` command line: tables, --json, and one-line errors with status 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skills_store.__main__ import main
from skills_store.store import Store, default_root
from tests import tiny


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store(tmp_path / "store")
    tiny.publish_tiny_controller(store, tiny.publish_tiny(store))
    tiny.publish_tiny(store, seed=1)
    store.alias("humanoid", "prod", 1)
    monkeypatch.setenv("REPERTOIRE_STORE", str(store.root))
    return store


Capture = pytest.CaptureFixture[str]


def test_ls_prints_an_aligned_table(store: Store, capsys: Capture) -> None:
    assert main(["ls"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "SKILL",
        "VERSION",
        "KIND",
        "ALIASES",
        "CREATED",
        "DIGEST",
        "SIZE",
        "SOURCE",
        "LICENCE",
    ]
    assert [line.split()[:4] for line in lines[1:]] == [
        ["humanoid", "2", "skills", "latest"],
        ["humanoid", "1", "skills", "prod"],
        ["reach", "1", "controller", "latest"],
    ]
    column = lines[0].index("KIND")
    assert {line[column - 1] for line in lines} == {" "}  # aligned


def test_show_json_has_the_manifest_fields(store: Store, capsys: Capture) -> None:
    assert main(["show", "humanoid@latest", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    version = store.resolve("humanoid")
    assert shown["card"] == version.manifest.card
    assert (shown["name"], shown["version"], shown["digest"]) == ("humanoid", 2, version.digest)
    assert (shown["kind"], shown["licence"], shown["latent"]["dim"]) == (
        "skills",
        "CC0-1.0",
        tiny.LATENT,
    )
    assert shown["graphs"]["policy"]["inputs"][0]["shape"] == ["B", tiny.STATE]
    assert {"created", "lineage", "files", "aliases"} <= set(shown)
    assert "mjcf" not in shown["character"]


def test_show_prints_parent_and_graphs(store: Store, capsys: Capture) -> None:
    assert main(["show", "reach"]) == 0
    out = capsys.readouterr().out
    assert "parent     humanoid@1" in out
    assert "controller: state(B, 69), goal(B, 3) -> z(B, 8)" in out


def test_alias_set_list_and_log(store: Store, capsys: Capture) -> None:
    assert main(["alias", "humanoid", "prod", "2", "--why", "better"]) == 0
    assert "humanoid@prod -> humanoid@2" in capsys.readouterr().out
    assert main(["alias", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported.pop("@protected") == {"humanoid": ["prod"]}
    assert reported == {"humanoid": {"latest": 2, "prod": 2}, "reach": {"latest": 1}}
    assert main(["log", "humanoid", "--json"]) == 0
    assert [move["number"] for move in json.loads(capsys.readouterr().out)] == [1, 2]
    assert main(["log", "humanoid"]) == 0
    assert "better" in capsys.readouterr().out


def test_delete_lease_release_and_gc(store: Store, capsys: Capture) -> None:
    assert main(["lease", "humanoid@2", "--for", "15m", "--why", "rollout", "--json"]) == 0
    [lease] = json.loads(capsys.readouterr().out)
    assert main(["delete", "humanoid@2", "--why", "it limps"]) == 2
    assert "rollout" in capsys.readouterr().err
    assert main(["lease"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == [lease["id"][:8], "humanoid@2"]
    assert main(["release", lease["id"][:8], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"lease": lease["id"][:8], "released": True}
    assert main(["delete", "humanoid@2", "--why", "it limps"]) == 0
    assert "humanoid@2 is deleted" in capsys.readouterr().out
    assert main(["log", "humanoid"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[3:5] == ["2", "deleted"]
    assert main(["log", "humanoid", "--json"]) == 0
    assert [event["event"] for event in json.loads(capsys.readouterr().out)] == ["move", "delete"]
    assert main(["gc", "--dry-run"]) == 0
    assert "0 files, 0.0 kB would be freed" in capsys.readouterr().out
    for argv, freed in ((["--dry-run"], 4), ([], 4), ([], 0)):
        assert main(["gc", "--grace", "0", "--json", *argv]) == 0
        found = json.loads(capsys.readouterr().out)
        assert len(found["orphans"]) == freed
        assert found["bytes"] == sum(orphan["bytes"] for orphan in found["orphans"])
    assert main(["verify"]) == 0


def test_damage_is_reported_and_the_rest_listed(store: Store, capsys: Capture) -> None:
    assert main(["verify"]) == 0
    record = store.root / "skills/humanoid/v/00000001.json"
    record.chmod(0o644)
    record.write_text("rot")
    capsys.readouterr()
    assert main(["ls"]) == 0
    out, err = capsys.readouterr()
    assert "humanoid@1 is refused" in err
    assert len(out.splitlines()) == 3
    assert main(["verify", "--json"]) == 1
    assert "humanoid@1" in {fault["ref"] for fault in json.loads(capsys.readouterr().out)["faults"]}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["show", "humanid"], "did you mean 'humanoid'"),
        (["show", "humanoid@9"], "there are: 1-2, prod=1"),
        (["show", "../etc"], "is not a reference"),
        (["alias", "humanoid", "latest", "1"], "latest is always"),
        (["alias", "humanoid", "prod"], "needs a version NUMBER"),
        (["log", "nobody"], "no skill 'nobody'"),
        (
            ["delete", "humanoid@1", "--why", "x"],
            "alias prod points to it; controller reach@1 is bound to it",
        ),
        (["delete", "humanoid", "--why", "x"], "by number or digest"),
        (["lease", "humanoid", "--for", "a while"], "write 90s, 15m, 1h or 7d"),
        (["release", "abc"], "there are no leases"),
        (["gc", "--grace", "soon"], "write 90s"),
        (["rollback", "humanoid", "prod"], "nothing else before"),
        (["search", "--where", "survival"], "write survival>=0.9"),
        (
            ["alias", "humanoid", "prod", "２"],
            "'２' is no version NUMBER; write 1 or more in the digits 0 to 9",
        ),
        (["alias", "humanoid", "prod", "1_0"], "'1_0' is no version NUMBER"),
        (["push", "humanoid@1", "--to", ""], "'' is no store; expected a folder"),
        (["pull", "humanoid@1", "--from", ""], "'' is no store; expected a folder"),
        (["ls", "--store", ""], "'' is no store; expected a folder"),
        (
            ["push", "humanoid@1", "--to", "s3:/bkt/p"],
            "'s3:/bkt/p' is no store; write s3://bucket/prefix",
        ),
        (["export", "humanoid", "--onnx", ""], "'' names no file or folder"),
        (["import", ""], "'' names no file or folder"),
        (["verify-signature", "humanoid", "--keys", ""], "'' names no file or folder"),
        (["delete", "humanoid@1"], "arguments are required: --why; see `skills delete --help`"),
        (["alias", "humanoid", "canary", "1", "--why", "\udcff"], "'\\udcff' is not in UTF-8"),
        (["lease", "humanoid", "--why", "\udcff"], "'\\udcff' is not in UTF-8"),
        (["delete", "humanoid@2", "--why", "\udcff"], "'\\udcff' is not in UTF-8"),
    ],
)
def test_refused_command_prints_one_line_and_exits_2(
    store: Store, capsys: Capture, argv: list[str], expected: str
) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert expected in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("argv", "code", "expected"),
    [
        (["show", "nobody", "--json"], "unknown_skill", "no skill 'nobody'"),
        (["--json", "show", "humanoid@9"], "unknown_version", "there are: 1-2"),
        (["delete", "--json", "humanoid@1"], "invalid_argument", "--why"),
        (
            ["export", "humanoid", "--onnx", "/dev/null/x", "--json"],
            "not_written",
            "/dev/null/x is not written",
        ),
    ],
)
def test_refusal_with_json_is_a_code_and_a_message(
    store: Store, capsys: Capture, argv: list[str], code: str, expected: str
) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    reported = json.loads(err)
    assert (out, set(reported), reported["code"]) == ("", {"code", "message"}, code)
    assert expected in reported["message"]


def test_show_ls_and_search_mark_protected_aliases(store: Store, capsys: Capture) -> None:
    store.alias("humanoid", "canary", 1)
    assert main(["show", "humanoid@1"]) == 0
    assert "  aliases    canary, prod (protected)\n" in capsys.readouterr().out
    for argv in (["ls", "--json"], ["search", "--kind", "skills", "--json"]):
        assert main(argv) == 0
        rows = {row["ref"]: row for row in json.loads(capsys.readouterr().out)["versions"]}
        assert (rows["humanoid@1"]["aliases"], rows["humanoid@1"]["protected"]) == (
            ["canary", "prod"],
            ["prod"],
        )
        assert rows["humanoid@2"]["protected"] == []


def test_lease_prefix_shared_by_two_is_ambiguous(store: Store, capsys: Capture) -> None:
    ids = [store.lease("humanoid", 60).id for _ in range(17)]  # more than the 16 first letters
    first = next(id[0] for id in ids if sum(other[0] == id[0] for other in ids) > 1)
    matching = sorted(id for id in ids if id[0] == first)
    assert main(["release", first]) == 2
    assert (
        f"lease '{first}' is ambiguous: {', '.join(matching)} begin like this"
        in capsys.readouterr().err
    )
    assert len(store.leases()) == 17


def test_store_option_before_or_after_the_command(
    tmp_path: Path, store: Store, capsys: Capture
) -> None:
    empty = str(tmp_path / "empty")
    for argv in (["--store", empty, "ls"], ["ls", "--store", empty]):
        assert main(argv) == 0
        assert "no skills in" in capsys.readouterr().err


def test_default_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPERTOIRE_STORE", raising=False)
    assert default_root().parts[-2:] == ("skills_store", "data")


def test_module_runs_as_a_program(store: Store) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "skills_store", "show", "nobody"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("skills: no skill 'nobody'")
