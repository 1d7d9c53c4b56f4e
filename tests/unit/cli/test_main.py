"""The command line: exit codes, JSON everywhere, and errors in one line."""

import json
from pathlib import Path

import pytest

from nodes.cli.main import run

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _nobody_runs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("r")))


def test_version(capsys: Output) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("overlay ")
    assert run(["--version", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"version"}


@pytest.mark.parametrize(
    "words",
    [[], ["dance"], ["stop"], ["stop", "ada", "--all"], ["status", "--nmae", "x"], ["echo"]],
)
def test_wrong_usage_is_2(words: list[str], capsys: Output) -> None:
    assert run(words) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        *("peer", "status", "stop", "echo", "demo", "sim", "new-protocol"),
        *("broker", "bdn", "brokers", "discover"),
        *("keys init", "keys issue", "keys revoke", "keys list", "keys show"),
        *("config show", "config check"),
    ],
)
def test_every_command_has_help_and_json(command: str, capsys: Output) -> None:
    assert run([*command.split(), "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_status_of_nothing(capsys: Output) -> None:
    assert run(["status"]) == 0
    assert capsys.readouterr().out == "no node runs on this machine\n"
    assert run(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"nodes": []}


@pytest.mark.parametrize("words", [["status", "ada"], ["stop", "ada"]])
def test_a_node_that_does_not_run_is_told(words: list[str], capsys: Output) -> None:
    assert run(words) == 1
    told = "overlay: no node 'ada' runs on this machine (running: none)\n"
    assert capsys.readouterr().err == told


def test_config_show_has_every_setting_with_its_reason(capsys: Output) -> None:
    assert run(["config", "show", "--json", "--set", "echo.timeout=3"]) == 0
    shown = {row["key"]: row for row in json.loads(capsys.readouterr().out)["settings"]}
    assert shown["echo.timeout"]["value"] == 3.0
    assert shown["echo.timeout"]["unit"] == "s"
    assert all(row["reason"] for row in shown.values())
    assert run(["config", "show"]) == 0
    assert "net.heartbeat" in capsys.readouterr().out


def test_config_check(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "lab.toml"
    file.write_text("[echo]\ntimeout = 3.0\n")
    assert run(["config", "check", str(file)]) == 0
    assert run(["config", "check", str(file), "--json"]) == 0
    capsys.readouterr()
    file.write_text("[echo]\ntimeout = -3.0\n")
    assert run(["config", "check", str(file)]) == 1
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "echo.timeout = -3.0: must be a number from 0.001 to 3600 s" in errors


def test_new_protocol_writes_into_the_named_clone(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "protocols").mkdir()
    (tmp_path / "protocols" / "tags.toml").write_text("[echo]\nblocks = [16]\nretired = []\n")
    assert run(["new-protocol", "pingpong", "--folder", str(tmp_path), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written["first_tag"] == 32
    assert all((tmp_path / file).is_file() for file in written["files"])
    assert run(["new-protocol", "pingpong", "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_json_may_stand_before_the_command(capsys: Output) -> None:
    assert run(["--json", "status"]) == 0
    assert json.loads(capsys.readouterr().out) == {"nodes": []}
    assert run(["--json", "config", "show"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"] == "lan"


def test_stopping_all_of_none_is_told(capsys: Output) -> None:
    assert run(["stop", "--all"]) == 0
    assert capsys.readouterr().out == "no node runs on this machine\n"


def test_an_error_of_the_file_system_is_one_line(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "file").touch()
    assert run(["new-protocol", "pingpong", "--folder", str(tmp_path / "file" / "x")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("overlay st", ["status", "stop"]),
        ("overlay keys i", ["init", "issue"]),
        ("overlay peer --in", ["--insecure"]),
        ("overlay peer --profile l", ["lan", "local"]),
        ("overlay sim echo-p", ["echo-partition", "echo-power-cut"]),
        ("overlay stop a", [""]),
    ],
)
def test_shells_complete(
    words: str, offered: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("_OVERLAY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert run([]) == 0
    assert capsys.readouterr().out.strip("\n").split("\n") == offered
