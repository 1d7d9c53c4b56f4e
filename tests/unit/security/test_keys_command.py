"""`overlay keys …` as people and programs use it."""

from __future__ import annotations

import json
import stat
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from nodes.cli.main import run
from overlay.security.credentials import load_credentials
from overlay.security.rights import Rights


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERLAY_HOME", str(tmp_path))
    return tmp_path


def keys(*arguments: str) -> tuple[int, str, str]:
    """Its exit code, and what it says on stdout and stderr."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as errors:
        code = run(["keys", *arguments])
    return code, out.getvalue(), errors.getvalue()


def done(*arguments: str) -> str:
    code, out, errors = keys(*arguments)
    assert (code, errors) == (0, ""), errors
    return out


def failed(*arguments: str) -> str:
    code, out, errors = keys(*arguments)
    assert (code, out) == (1, "")
    assert errors.count("\n") == 1
    assert errors.startswith("overlay: ")
    return errors


def test_two_commands_make_a_node_that_can_start(home: Path) -> None:
    assert "overlay keys issue NAME --zone Z" in done("init", "--overlay", "lab")
    assert str(home / "keys" / "ada") in done("issue", "ada", "--zone", "lab")
    ada = load_credentials(home / "keys")
    assert ada.identity.rights == Rights(
        zones=("lab",), publish=("**",), subscribe=("**",), dht_read=True, dht_write=True
    )
    assert stat.S_IMODE((home / "keys").stat().st_mode) == 0o700


def test_rights_are_what_was_asked_for(home: Path) -> None:
    done("init")
    facts = json.loads(
        done(
            *("issue", "ada", "--zone", "a", "--zone", "b", "--role", "broker", "--role", "bdn"),
            *("--publish", "x/**", "--subscribe", "y/*", "--subscribe", "z", "--no-dht-write"),
            *("--days", "7", "--json"),
        )
    )
    assert facts["zones"] == ["a", "b"]
    assert facts["roles"] == ["broker", "bdn"]
    identity = load_credentials(home / "keys", "ada").identity
    assert identity.rights == Rights(
        zones=("a", "b"),
        roles=("broker", "bdn"),
        publish=("x/**",),
        subscribe=("y/*", "z"),
        dht_read=True,
        dht_write=False,
    )
    assert json.loads(done("show", "ada", "--json")) == facts
    assert facts["serial"] == f"{identity.serial:x}"


def test_nothing_is_replaced_without_force(home: Path) -> None:
    done("init")
    done("issue", "ada", "--zone", "lab")
    before = load_credentials(home / "keys").certificate
    assert "--force" in failed("init")
    assert "--force" in failed("issue", "ada", "--zone", "lab")
    assert load_credentials(home / "keys").certificate == before
    listed = json.loads(done("list", "--json"))["issued"]
    assert len(listed) == 1
    done("issue", "ada", "--zone", "lab", "--force")
    assert load_credentials(home / "keys").certificate != before
    done("init", "--force")
    assert json.loads(done("list", "--json"))["issued"] == []


def test_revoke_and_list(home: Path) -> None:
    done("init", "--overlay", "lab")
    done("issue", "ada", "--zone", "lab")
    done("issue", "eve", "--zone", "lab")
    assert "revoked.pem" in done("revoke", "eve")
    facts = json.loads(done("revoke", "eve", "--json"))
    assert [entry["name"] for entry in facts["revoked"]] == ["eve"]
    assert Path(facts["list"]) == home / "keys" / "authority" / "revoked.pem"
    states = {
        entry["name"]: entry["state"] for entry in json.loads(done("list", "--json"))["issued"]
    }
    assert states == {"ada": "valid", "eve": "revoked"}
    table = done("list")
    assert "ada" in table
    assert "revoked" in table
    shown = json.loads(done("show", "--json"))
    assert (shown["overlay"], shown["issued"], shown["valid"], shown["revoked"]) == ("lab", 2, 1, 1)


def test_show_is_for_people_too() -> None:
    done("init")
    done("issue", "ada", "--zone", "lab")
    text = done("show", "ada")
    assert "zones        lab" in text
    assert "dht_write    yes" in text
    assert "overlay" in done("show")


def test_no_output_holds_a_secret(home: Path) -> None:
    outputs = [
        done("init"),
        done("issue", "ada", "--zone", "lab", "--json"),
        *(done(*words) for words in (["list"], ["list", "--json"], ["show"], ["show", "ada"])),
    ]
    ada = load_credentials(home / "keys")
    secret_lines = (home / "keys" / "ada" / "node.key").read_text().split()
    for secret in (ada.signing_secret.hex(), ada.curve_secret.hex(), *secret_lines[1::2]):
        assert all(secret not in output for output in outputs)


def test_another_folder(tmp_path: Path) -> None:
    folder = str(tmp_path / "elsewhere")
    done("init", "--folder", folder)
    done("issue", "ada", "--zone", "lab", "--folder", folder)
    assert load_credentials(Path(folder)).name == "ada"
    assert "no authority" in failed("list")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["issue", "ada", "--zone", "lab"], "overlay keys init"),
        (["revoke", "ada"], "overlay keys init"),
        (["list"], "overlay keys init"),
        (["show"], "overlay keys init"),
        (["show", "ada"], "overlay keys issue ada --zone Z"),
        (["init", "--overlay", "a/b"], "'/'"),
    ],
)
def test_errors_before_init(arguments: list[str], says: str) -> None:
    assert says in failed(*arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["issue", "a b", "--zone", "lab"], "whitespace"),
        (["issue", "authority", "--zone", "lab"], "that folder is taken"),
        (["issue", "../ada", "--zone", "lab"], "'/'"),
        (["show", "../authority"], "'/'"),
        (["issue", "ada", "--zone", "a b"], "zone"),
        (["issue", "ada", "--zone", "lab", "--publish", "a//b"], "empty level"),
        (["revoke", "nobody"], "overlay keys list"),
    ],
)
def test_errors_after_init(home: Path, arguments: list[str], says: str) -> None:
    done("init")
    assert says in failed(*arguments)
    assert [path.name for path in (home / "keys").iterdir()] == ["authority"]


@pytest.mark.parametrize(
    "arguments",
    [["issue", "ada"], ["issue", "--zone", "z"], ["issue", "ada", "--zone", "z", "--days", "0"]],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert keys(*arguments)[0] == 2


def test_a_file_system_error_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert str(tmp_path / "file") in failed("init", "--folder", str(tmp_path / "file"))
