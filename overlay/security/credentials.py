"""What a node holds: its certificate, the two private keys that belong to it, and its authority."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from overlay.errors import RemoteProtocolError, SecurityError
from overlay.security.certificate import (
    Verifier,
    load_authority_certificate,
    read_identity,
    to_der,
    to_pem,
)
from overlay.security.files import (
    make_private_folder,
    read_private,
    read_public,
    write_private,
    write_public,
)
from overlay.security.folders import (
    AUTHORITY,
    AUTHORITY_CERTIFICATE_FILE,
    CERTIFICATE_FILE,
    NODE_KEY_FILE,
    REVOKED_FILE,
    default_keys_folder,
    first_commands,
)

if TYPE_CHECKING:
    from overlay.ids import NodeId
    from overlay.security.identity import Identity

_SIGNING = b"ed25519"
_CURVE = b"x25519"


class Credentials:
    """A node's own key material. Its `repr` shows no secret; nothing here writes to a log."""

    __slots__ = (
        "authority_certificate",
        "certificate",
        "curve_secret",
        "folder",
        "identity",
        "revocations",
        "signing_secret",
    )

    def __init__(
        self,
        *,
        authority_certificate: bytes,
        certificate: bytes,
        signing_secret: bytes,
        curve_secret: bytes,
        revocations: bytes,
        folder: Path | None = None,
    ) -> None:
        self.authority_certificate = authority_certificate  # DER
        self.certificate = certificate  # DER
        self.signing_secret = signing_secret  # 32 bytes of Ed25519
        self.curve_secret = curve_secret  # 32 bytes of X25519, as ZMQ_CURVE_SECRETKEY takes them
        self.revocations = revocations  # PEM or DER
        self.folder = folder  # where it was loaded from
        try:
            self.identity: Identity = read_identity(certificate)
        except RemoteProtocolError as error:
            raise SecurityError(
                f"{folder or 'a node folder'}: its certificate is damaged ({error.detail}): "
                "issue it again with `overlay keys issue NAME --zone Z --force`"
            ) from error

    def __repr__(self) -> str:
        return f"<Credentials of {self.name!r} in {self.identity.overlay!r}, secrets not shown>"

    @property
    def name(self) -> NodeId:
        """The name that the authority gave this node."""
        return self.identity.name

    @property
    def curve_public(self) -> bytes:
        """The public half of `curve_secret`, 32 bytes."""
        return self.identity.curve_key

    def signing_key(self) -> Ed25519PrivateKey:
        """The key that signs this node's datagrams."""
        return Ed25519PrivateKey.from_private_bytes(self.signing_secret)

    def verifier(self) -> Verifier:
        """A fresh verifier that believes this node's authority."""
        return Verifier(self.authority_certificate, self.revocations)

    def check(self, now: float) -> None:
        """SecurityError unless all pieces belong together and the certificate holds at `now`."""
        again = f"`overlay keys issue {self.name} --zone Z --force`"
        signing = self.signing_key().public_key().public_bytes_raw()
        curve = X25519PrivateKey.from_private_bytes(self.curve_secret).public_key()
        if (signing, curve.public_bytes_raw()) != (
            self.identity.signing_key,
            self.identity.curve_key,
        ):
            raise SecurityError(
                f"the private keys of {self.name!r} do not belong to its certificate: "
                f"copy the whole folder again, or run {again}"
            )
        try:
            self.verifier().verify(self.certificate, now)
        except RemoteProtocolError as error:
            until = datetime.fromtimestamp(self.identity.not_after, UTC)
            raise SecurityError(
                f"the certificate of {self.name!r} (valid until {until:%Y-%m-%d %H:%M} UTC) "
                f"is refused, {error}: run {again}"
            ) from error

    def save(self, folder: Path, *, replace: bool = False) -> Path:
        """Write `<folder>/<name>/` and return it; FileExistsError unless `replace`."""
        home = folder / self.name
        if not replace and (home / NODE_KEY_FILE).exists():
            raise FileExistsError(f"{home} holds keys already")
        make_private_folder(home)
        # The private keys last: until they are there, the folder does not count as a node's.
        certificates = {
            AUTHORITY_CERTIFICATE_FILE: to_pem(self.authority_certificate),
            CERTIFICATE_FILE: to_pem(self.certificate),
            REVOKED_FILE: self.revocations,
        }
        for name, data in certificates.items():
            write_public(home / name, data, replace=True)
        keys = b"\n".join(
            kind + b" " + b64encode(secret)
            for kind, secret in ((_SIGNING, self.signing_secret), (_CURVE, self.curve_secret))
        )
        write_private(home / NODE_KEY_FILE, keys + b"\n", replace=replace)
        return home


def load_credentials(
    folder: Path | None = None, name: NodeId | None = None, *, now: float | None = None
) -> Credentials:
    """Load and check a node's key material from a keys folder, or from the node's own folder.

    Without a name the folder must hold exactly one node. SecurityError says what to do.
    """
    keys = (folder or default_keys_folder()).expanduser()
    home = _node_folder(keys, name)
    try:
        signing_secret, curve_secret = _read_keys(home / NODE_KEY_FILE)
        credentials = Credentials(
            authority_certificate=to_der(
                load_authority_certificate(read_public(home / AUTHORITY_CERTIFICATE_FILE))
            ),
            certificate=_load_certificate(home / CERTIFICATE_FILE),
            signing_secret=signing_secret,
            curve_secret=curve_secret,
            revocations=read_public(home / REVOKED_FILE),
            folder=home,
        )
    except FileNotFoundError as error:
        raise SecurityError(
            f"{error.filename} is missing: copy the whole folder again, or run "
            + first_commands(keys, name or "NAME")
        ) from error
    except OSError as error:
        raise SecurityError(f"{error.filename} cannot be read: {error.strerror}") from error
    if name is not None and credentials.name != name:
        raise SecurityError(f"{home} holds the keys of {credentials.name!r}, not of {name!r}")
    credentials.revocations = newest_revocations(credentials)
    credentials.check(time.time() if now is None else now)
    return credentials


def newest_revocations(credentials: Credentials) -> bytes:
    """The newest list of those in the node's folder and of an authority beside it.

    Call it again while the node runs, for `Verifier.reload_revocations`.
    """
    if credentials.folder is None:
        return credentials.revocations
    verifier = credentials.verifier()
    newest = credentials.revocations
    beside = credentials.folder.parent / AUTHORITY / REVOKED_FILE
    for path in (credentials.folder / REVOKED_FILE, beside):
        try:
            candidate = read_public(path)
            if verifier.reload_revocations(candidate):
                newest = candidate
        except OSError:
            continue  # no authority on this machine, or it is another user's
        except SecurityError:
            if path != beside:  # an authority beside it may be another overlay's
                raise
    return newest


def read_certificate_file(path: Path) -> Identity:
    """Read what a node's certificate file says, to show it; checks its form only."""
    try:
        return read_identity(_load_certificate(path))
    except RemoteProtocolError as error:
        raise SecurityError(f"{path} is no node certificate: {error.detail}") from error


def _node_folder(keys: Path, name: NodeId | None) -> Path:
    if (keys / NODE_KEY_FILE).exists():
        return keys
    if name is not None:
        if (keys / name / NODE_KEY_FILE).exists():
            return keys / name
        raise SecurityError(f"no keys of {name!r} in {keys}: run " + first_commands(keys, name))
    nodes = sorted(path.parent.name for path in keys.glob(f"*/{NODE_KEY_FILE}"))
    if not nodes:
        raise SecurityError(f"no key material in {keys}: run " + first_commands(keys))
    if len(nodes) > 1:
        some = ", ".join(nodes[:5]) + (", …" if len(nodes) > 5 else "")
        raise SecurityError(f"{keys} holds the keys of {len(nodes)} nodes ({some}): name one")
    return keys / nodes[0]


def _load_certificate(path: Path) -> bytes:
    try:
        return to_der(x509.load_pem_x509_certificate(read_public(path)))
    except ValueError as error:
        raise SecurityError(f"{path} is damaged: copy it again, or issue a new one") from error


def _read_keys(path: Path) -> tuple[bytes, bytes]:
    try:
        entries = dict(line.split(b" ") for line in read_private(path).splitlines())
        keys = (
            b64decode(entries[_SIGNING], validate=True),
            b64decode(entries[_CURVE], validate=True),
        )
    except (ValueError, KeyError):
        keys = b"", b""
    if any(len(key) != 32 for key in keys):
        # Raised here and not above, where its cause would quote the file's text.
        raise SecurityError(f"{path} is damaged: copy it again, or issue new keys")
    return keys
