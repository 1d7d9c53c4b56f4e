"""Where key material lies: `<keys>/authority/` for the CA and `<keys>/<name>/` for each node.

    authority/  certificate.pem  authority.key  issued.json  revoked.pem
    <name>/     certificate.pem  node.key       authority.pem  revoked.pem

A node's folder is complete: copied to another machine it is all that the node needs there.
"""

from __future__ import annotations

import os
from pathlib import Path

AUTHORITY = "authority"  # no node may have this name

CERTIFICATE_FILE = "certificate.pem"
AUTHORITY_KEY_FILE = "authority.key"
LEDGER_FILE = "issued.json"
NODE_KEY_FILE = "node.key"
AUTHORITY_CERTIFICATE_FILE = "authority.pem"
REVOKED_FILE = "revoked.pem"


def default_keys_folder() -> Path:
    """`$OVERLAY_HOME/keys`, or `~/.config/zmq-overlay/keys`."""
    home = os.environ.get("OVERLAY_HOME")
    if home:
        return Path(home).expanduser() / "keys"
    return Path.home() / ".config" / "zmq-overlay" / "keys"


def first_commands(folder: Path, name: str = "NAME") -> str:
    """Name the two commands that make key material, as they must be typed for this folder."""
    where = "" if folder == default_keys_folder() else f" --folder {folder}"
    return f"`overlay keys init{where}` (once), then `overlay keys issue {name} --zone Z{where}`"
