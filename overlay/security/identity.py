"""Who a peer has proven to be. Free of cryptography, since an insecure node uses it as well."""

from __future__ import annotations

import msgspec

from overlay.ids import NodeId
from overlay.security.rights import Rights


class Identity(msgspec.Struct, frozen=True):
    """What a verified certificate says about its owner; all keys are public ones."""

    name: NodeId
    overlay: str
    rights: Rights
    curve_key: bytes  # 32 bytes of X25519; what the peer must use on its links
    signing_key: bytes  # 32 bytes of Ed25519; what its datagrams must be signed with
    serial: int
    not_before: float  # Unix seconds
    not_after: float
    fingerprint: bytes  # SHA-256 of the certificate
