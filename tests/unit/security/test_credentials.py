"""What a node loads at its start, and the line it prints if it cannot."""

from __future__ import annotations

import logging
import stat
from base64 import b64encode
from pathlib import Path

import pytest

from overlay.errors import SecurityError
from overlay.security.authority import Authority
from overlay.security.credentials import (
    Credentials,
    load_credentials,
    newest_revocations,
    read_certificate_file,
)
from overlay.security.folders import default_keys_folder
from tests.unit.security.conftest import DAY, NOW, RIGHTS


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A keys folder with an authority and the node ada."""
    Authority.create(tmp_path, "lab", now=NOW).issue("ada", RIGHTS, 30, now=NOW).save(tmp_path)
    return tmp_path


def refusal(folder: Path, name: str | None = None, now: float = NOW) -> str:
    with pytest.raises(SecurityError) as caught:
        load_credentials(folder, name, now=now)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_it_loads_what_was_saved(keys: Path) -> None:
    loaded = load_credentials(keys, "ada", now=NOW)
    assert loaded.name == "ada"
    assert loaded.identity.rights == RIGHTS
    assert loaded.folder == keys / "ada"
    assert load_credentials(keys, now=NOW).certificate == loaded.certificate
    assert load_credentials(keys / "ada", now=NOW).signing_secret == loaded.signing_secret


def test_only_the_private_keys_are_private(keys: Path) -> None:
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (keys / "ada", *(keys / "ada").iterdir())
    }
    assert modes == {
        "ada": 0o700,
        "authority.pem": 0o644,
        "certificate.pem": 0o644,
        "node.key": 0o600,
        "revoked.pem": 0o644,
    }


def test_a_folder_copied_to_another_machine_is_complete(keys: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (keys / "ada").rename(away / "ada")
    assert load_credentials(away, now=NOW).name == "ada"


def test_no_key_material_names_exactly_the_two_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERLAY_HOME", str(tmp_path))
    keys = default_keys_folder()
    assert keys == tmp_path / "keys"
    assert refusal(keys) == (
        f"no key material in {keys}: run `overlay keys init` (once), "
        "then `overlay keys issue NAME --zone Z`"
    )
    assert "`overlay keys issue bob --zone Z`" in refusal(keys, "bob")
    elsewhere = tmp_path / "elsewhere"
    assert f"`overlay keys init --folder {elsewhere}`" in refusal(elsewhere)


def test_the_default_folder_is_under_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OVERLAY_HOME", raising=False)
    assert default_keys_folder() == Path.home() / ".config" / "zmq-overlay" / "keys"


def test_several_nodes_need_a_name(keys: Path) -> None:
    Authority.load(keys).issue("bob", RIGHTS, now=NOW).save(keys)
    assert "2 nodes (ada, bob): name one" in refusal(keys)
    assert load_credentials(keys, "bob", now=NOW).name == "bob"


@pytest.mark.parametrize("file", ["authority.pem", "certificate.pem", "revoked.pem"])
def test_a_missing_file_is_named(keys: Path, file: str) -> None:
    (keys / "ada" / file).unlink()
    assert f"{file} is missing" in refusal(keys)


@pytest.mark.parametrize("file", ["authority.pem", "certificate.pem", "revoked.pem", "node.key"])
def test_a_damaged_file_is_one_clear_line(keys: Path, file: str) -> None:
    (keys / "ada" / file).write_bytes(b"garbage")
    assert "damaged" in refusal(keys)


def test_a_damaged_key_file_is_not_quoted(keys: Path) -> None:
    path = keys / "ada" / "node.key"
    path.write_bytes(path.read_bytes().replace(b"x25519 ", b"x25519"))
    with pytest.raises(SecurityError) as caught:
        load_credentials(keys, now=NOW)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_private_key_that_others_can_read_is_refused(keys: Path) -> None:
    (keys / "ada" / "node.key").chmod(0o644)
    assert "chmod 600" in refusal(keys)


def test_keys_of_another_node_do_not_fit(keys: Path) -> None:
    Authority.load(keys).issue("bob", RIGHTS, now=NOW).save(keys)
    (keys / "ada" / "node.key").write_bytes((keys / "bob" / "node.key").read_bytes())
    assert "do not belong to its certificate" in refusal(keys, "ada")


def test_a_renamed_folder_does_not_rename_the_node(keys: Path) -> None:
    (keys / "ada").rename(keys / "bob")
    assert "holds the keys of 'ada', not of 'bob'" in refusal(keys, "bob")


def test_an_expired_certificate_says_how_to_renew_it(keys: Path) -> None:
    line = refusal(keys, now=NOW + 31 * DAY)
    assert "certificate-expired" in line
    assert "overlay keys issue ada --zone Z --force" in line


def test_a_node_whose_certificate_was_revoked_beside_it_does_not_start(keys: Path) -> None:
    Authority.load(keys).revoke("ada", now=NOW)
    assert "certificate-revoked" in refusal(keys)


def test_the_newest_list_is_found_while_the_node_runs(keys: Path) -> None:
    authority = Authority.load(keys)
    eve = authority.issue("eve", RIGHTS, now=NOW)
    ada = load_credentials(keys, "ada", now=NOW)
    verifier = ada.verifier()
    verifier.verify(eve.certificate, NOW)
    assert not verifier.reload_revocations(newest_revocations(ada))
    authority.revoke("eve", now=NOW)
    assert verifier.reload_revocations(newest_revocations(ada))
    assert verifier.revocation_number == 1


def test_an_authority_of_another_overlay_beside_it_does_not_matter(keys: Path) -> None:
    Authority.create(keys, "office", replace=True, now=NOW)
    assert load_credentials(keys, "ada", now=NOW).identity.overlay == "lab"


def test_saving_twice_needs_to_be_said(keys: Path) -> None:
    ada = load_credentials(keys, now=NOW)
    renewed = Authority.load(keys).issue("ada", RIGHTS, now=NOW)
    with pytest.raises(FileExistsError):
        renewed.save(keys)
    assert load_credentials(keys, now=NOW).certificate == ada.certificate
    renewed.save(keys, replace=True)
    assert load_credentials(keys, now=NOW).certificate == renewed.certificate


def test_a_certificate_file_can_be_shown_without_keys(keys: Path) -> None:
    assert read_certificate_file(keys / "ada" / "certificate.pem").name == "ada"
    with pytest.raises(SecurityError, match="no node certificate"):
        read_certificate_file(keys / "authority" / "certificate.pem")


def test_secrets_are_neither_shown_nor_logged(
    keys: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = load_credentials(keys, now=NOW)
    logging.getLogger("test").warning("%s %r %s", ada, ada, [ada])
    print(ada, f"{ada!r}")
    seen = caplog.text + "".join(capfd.readouterr())
    assert "secrets not shown" in seen
    for secret in (ada.signing_secret, ada.curve_secret):
        for form in (repr(secret), secret.hex(), b64encode(secret).decode()):
            assert form not in seen


def test_damaged_material_in_memory_is_a_security_error(ada: Credentials) -> None:
    with pytest.raises(SecurityError, match="certificate is damaged"):
        Credentials(
            authority_certificate=ada.authority_certificate,
            certificate=b"x",
            signing_secret=ada.signing_secret,
            curve_secret=ada.curve_secret,
            revocations=ada.revocations,
        )
