"""Trust while a node runs: a newer revocation list is taken, a damaged one is not."""

from pathlib import Path

import pytest

from overlay.errors import RemoteProtocolError
from overlay.net.trust import CertifiedTrust
from overlay.security.authority import Authority
from overlay.security.credentials import load_credentials
from overlay.security.folders import REVOKED_FILE
from overlay.security.rights import Rights


def test_a_damaged_revocation_list_changes_nothing_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority.create(tmp_path, "lab")
    ada, eve = (authority.issue(name, Rights(zones=("west",)), 1) for name in ("ada", "eve"))
    home = ada.save(tmp_path)
    trust = CertifiedTrust(load_credentials(tmp_path, "ada"))
    now = eve.identity.not_after - 1
    (home / REVOKED_FILE).write_bytes(b"half a fi")
    trust.refresh()
    trust.refresh()
    assert len(caplog.records) == 1
    trust.identify(eve.certificate, "eve", None, now)
    authority.revoke("eve")
    (home / REVOKED_FILE).write_bytes(authority.revocations())
    trust.refresh()
    with pytest.raises(RemoteProtocolError, match="certificate-revoked"):
        trust.identify(eve.certificate, "eve", None, now)
