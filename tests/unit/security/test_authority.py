"""The authority: its files, its ledger, and what a crash leaves behind."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from overlay.errors import LocalProtocolError, SecurityError
from overlay.security.authority import Authority
from overlay.security.certificate import load_authority_certificate
from overlay.security.revocation import read_revocations
from overlay.security.rights import Rights
from tests.unit.security.conftest import DAY, NOW, RIGHTS


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def revoked_serials(authority: Authority) -> set[str]:
    listed = read_revocations(
        authority.revocations(), load_authority_certificate(authority.certificate)
    )
    return {f"{serial:x}" for serial in listed.serials}


def test_its_files_are_private(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    Authority.create(keys, "lab", now=NOW)
    assert mode_of(keys) == 0o700
    assert mode_of(keys / "authority") == 0o700
    assert mode_of(keys / "authority" / "authority.key") == 0o600
    assert mode_of(keys / "authority" / "issued.json") == 0o600
    assert [path.name for path in (keys / "authority").glob(".*")] == [".lock"]


def test_it_loads_as_it_was_created(tmp_path: Path) -> None:
    created = Authority.create(tmp_path, "lab", now=NOW)
    loaded = Authority.load(tmp_path)
    assert loaded.certificate == created.certificate
    assert loaded.overlay == "lab"
    node = loaded.issue("ada", RIGHTS, now=NOW)
    assert node.verifier().verify(node.certificate, NOW).name == "ada"


def test_it_is_not_replaced_by_accident(tmp_path: Path) -> None:
    first = Authority.create(tmp_path, "lab", now=NOW)
    with pytest.raises(SecurityError, match="holds an authority already"):
        Authority.create(tmp_path, "lab", now=NOW)
    assert Authority.load(tmp_path).certificate == first.certificate
    second = Authority.create(tmp_path, "lab", replace=True, now=NOW)
    assert Authority.load(tmp_path).certificate == second.certificate != first.certificate


def test_a_missing_authority_names_the_two_commands(tmp_path: Path) -> None:
    with pytest.raises(SecurityError) as caught:
        Authority.load(tmp_path)
    assert "overlay keys init" in str(caught.value)
    assert "overlay keys issue NAME --zone Z" in str(caught.value)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    Authority.create(tmp_path, "lab", now=NOW)
    (tmp_path / "authority" / "authority.key").chmod(0o640)
    with pytest.raises(SecurityError, match=r"mode 0640.*chmod 600"):
        Authority.load(tmp_path)


def test_a_damaged_or_foreign_key_is_refused(tmp_path: Path) -> None:
    Authority.create(tmp_path / "a", "lab", now=NOW)
    Authority.create(tmp_path / "b", "lab", now=NOW)
    key = tmp_path / "a" / "authority" / "authority.key"
    key.write_bytes((tmp_path / "b" / "authority" / "authority.key").read_bytes())
    with pytest.raises(SecurityError, match="do not belong together"):
        Authority.load(tmp_path / "a")
    key.write_bytes(b"-----BEGIN PRIVATE KEY-----\n")
    with pytest.raises(SecurityError, match="damaged"):
        Authority.load(tmp_path / "a")


def test_revoking_a_name_takes_all_its_certificates(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab", now=NOW)
    for name in ("eve", "ada", "eve"):
        authority.issue(name, RIGHTS, now=NOW)
    revoked = authority.revoke("eve", now=NOW + 5)
    assert [entry.name for entry in revoked] == ["eve", "eve"]
    assert revoked_serials(authority) == {entry.serial for entry in revoked}
    assert [entry.state(NOW) for entry in Authority.load(tmp_path).issued()] == [
        "revoked",
        "valid",
        "revoked",
    ]


def test_revoking_a_serial_takes_only_that_one(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab", now=NOW)
    authority.issue("eve", RIGHTS, now=NOW)
    authority.issue("eve", RIGHTS, now=NOW)
    serial = authority.issued()[1].serial
    assert [entry.serial for entry in authority.revoke(serial.upper(), now=NOW)] == [serial]
    assert revoked_serials(authority) == {serial}


def test_revoking_again_keeps_the_first_time_and_publishes_again(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab", now=NOW)
    empty = authority.revocations()
    authority.issue("eve", RIGHTS, now=NOW)
    authority.revoke("eve", now=NOW + 1)
    authority.revocations_file.write_bytes(empty)  # as if power was cut before the list
    (entry,) = authority.revoke("eve", now=NOW + 2)
    assert entry.revoked_at == NOW + 1
    assert revoked_serials(authority) == {entry.serial}


def test_a_later_revocation_never_forgets_an_earlier_one(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab", now=NOW)
    for name in ("eve", "mal"):
        authority.issue(name, RIGHTS, now=NOW)
        authority.revoke(name, now=NOW)
    assert len(revoked_serials(authority)) == 2


def test_the_list_forgets_what_expired_long_ago(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab", now=NOW)
    authority.issue("old", RIGHTS, 1, now=NOW)
    authority.issue("eve", RIGHTS, 365, now=NOW)
    authority.revoke("old", now=NOW)
    assert len(revoked_serials(authority)) == 1
    (eve,) = authority.revoke("eve", now=NOW + 40 * DAY)
    assert revoked_serials(authority) == {eve.serial}


def test_revoking_nobody_is_an_error(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab", now=NOW)
    with pytest.raises(SecurityError, match="overlay keys list"):
        authority.revoke("nobody", now=NOW)


@pytest.mark.parametrize("name", ["", "a/b", "..", "authority", "a\nb", "x" * 65])
def test_impossible_names_are_not_issued(authority: Authority, name: str) -> None:
    with pytest.raises(LocalProtocolError):
        authority.issue(name, RIGHTS, now=NOW)


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_impossible_lifetimes_are_not_issued(authority: Authority, days: float) -> None:
    with pytest.raises(LocalProtocolError, match="days"):
        authority.issue("ada", RIGHTS, days, now=NOW)


def test_no_certificate_outlives_the_authority(authority: Authority) -> None:
    late = authority.issue("late", RIGHTS, 365, now=NOW + 3600 * DAY)
    assert late.identity.not_after == authority.not_after
    with pytest.raises(SecurityError, match="expired"):
        authority.issue("later", RIGHTS, 365, now=NOW + 3651 * DAY)


def test_its_key_is_not_in_its_repr(tmp_path: Path) -> None:
    assert "PRIVATE" not in repr(Authority.create(tmp_path, "lab", now=NOW))


def test_two_processes_that_issue_at_once_lose_no_entry(tmp_path: Path) -> None:
    Authority.create(tmp_path, "lab")
    script = (
        "import sys; from pathlib import Path\n"
        "from overlay.security.authority import Authority\n"
        "from overlay.security.rights import Rights\n"
        "authority = Authority.load(Path(sys.argv[1]))\n"
        "for number in range(10): authority.issue(f'{sys.argv[2]}{number}', Rights())\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), who]) for who in "ab"]
    assert [process.wait(60) for process in running] == [0, 0]
    names = {entry.name for entry in Authority.load(tmp_path).issued()}
    assert names == {f"{who}{number}" for who in "ab" for number in range(10)}


def test_rights_default_to_nothing(authority: Authority) -> None:
    rights = authority.issue("nobody", Rights(), now=NOW).identity.rights
    assert not rights.may_join("lab")
    assert not rights.may_be("broker")
    assert not rights.may_publish("a")
    assert not rights.may_subscribe("a")
    assert not rights.may_read_dht()
    assert not rights.may_write_dht()
