"""Certificates for the lab's peers: issued here, and each host gets those of its own alone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from nodes.lab.onhost.facts import digest
from nodes.lab.operator import Operator
from nodes.lab.plan import PEER, LabPeer
from overlay.security.authority import Authority
from overlay.security.credentials import read_certificate_file
from overlay.security.folders import (
    AUTHORITY,
    AUTHORITY_KEY_FILE,
    CERTIFICATE_FILE,
    NODE_KEY_FILE,
    REVOKED_FILE,
)
from overlay.security.rights import Rights

DAYS = 365
RENEW_BEFORE = 30 * 86_400.0  # s: an `up` in the last month of a certificate renews it
EVERYTHING = ("**",)


class LabKeys:
    """The lab's authority and what it issued."""

    def __init__(self, operator: Operator) -> None:
        self._folder = operator.keys
        if (self._folder / AUTHORITY / AUTHORITY_KEY_FILE).exists():
            self._authority = Authority.load(self._folder)
        else:
            self._authority = Authority.create(self._folder, operator.name)

    def issue(self, peers: Iterable[LabPeer]) -> list[str]:
        """Make keys for those who have none that fit; the names of those who got new ones."""
        issued = []
        for peer in peers:
            wanted = _rights(peer)
            if not self._fits(peer.name, wanted):
                self._authority.issue(peer.name, wanted, DAYS).save(self._folder, replace=True)
                issued.append(peer.name)
        return issued

    def certificate(self, name: str) -> str:
        """The digest of a peer's certificate: another one means a restart."""
        return digest(self._folder / name / CERTIFICATE_FILE)

    def files(self, name: str) -> dict[str, tuple[bytes, int]]:
        """All that a host gets for one of its peers, to be written below its folder."""
        found = {}
        for path in sorted((self._folder / name).iterdir()):
            if not path.name.startswith("."):
                mode = 0o600 if path.name == NODE_KEY_FILE else 0o644
                content = self.revocations() if path.name == REVOKED_FILE else path.read_bytes()
                found[f"keys/{name}/{path.name}"] = (content, mode)
        return found

    def revoke(self, names: Iterable[str]) -> None:
        """Refuse these peers from now on; their keys are removed here."""
        issued = {entry.name for entry in self._authority.issued()}
        for name in names:
            if name in issued:
                self._authority.revoke(name)
            folder = self._folder / name
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                path.unlink()

    def revocations(self) -> bytes:
        """The newest list, PEM."""
        return self._authority.revocations()

    @property
    def revocations_file(self) -> Path:
        """Where it lies."""
        return self._authority.revocations_file

    def _fits(self, name: str, wanted: Rights) -> bool:
        path = self._folder / name / CERTIFICATE_FILE
        if not (path.exists() and (path.parent / NODE_KEY_FILE).exists()):
            return False
        identity = read_certificate_file(path)
        valid = {entry.serial for entry in self._authority.issued() if entry.revoked_at is None}
        return (
            identity.rights == wanted
            and f"{identity.serial:x}" in valid
            and identity.not_after - time.time() > RENEW_BEFORE
        )


def _rights(peer: LabPeer) -> Rights:
    return Rights(
        zones=("*",) if peer.role == "supervisor" else (peer.zone,),
        roles=() if peer.role == PEER else (peer.role,),
        publish=EVERYTHING,
        subscribe=EVERYTHING,
        dht_read=True,
        dht_write=True,
    )
