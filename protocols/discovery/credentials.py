"""Who may be served: shared credentials, network realms, and addresses that answer.

A credential never travels. A request shows that its sender knows one by a keyed hash over the
request's id and the sender's name, so that it may be multicast and proves nothing for another.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from hmac import compare_digest
from ipaddress import ip_address, ip_network
from random import Random

from overlay.ids import NodeId, vid_of, vid_to_wire
from overlay.protocol import UdpAddress
from protocols.discovery.messages import DIGEST_BYTES, MOST_DIGESTS

PROOF_BYTES = 16
COOKIE_LIFE = 60.0  # s, at least; at most twice that


def digest_of(name: NodeId) -> bytes:
    """A broker's name in a list."""
    return vid_to_wire(vid_of(name))[:DIGEST_BYTES]


def digests_of(names: Iterable[NodeId]) -> bytes:
    """Those of the first names, as many as a list may hold."""
    digests = [digest_of(name) for name in names]
    return b"".join(digests[:MOST_DIGESTS])


def split_digests(digests: bytes) -> list[bytes]:
    """One by one; a rest that is none is left out."""
    whole = len(digests) - len(digests) % DIGEST_BYTES
    return [digests[at : at + DIGEST_BYTES] for at in range(0, whole, DIGEST_BYTES)]


def prove(credential: str, what: bytes, name: NodeId) -> bytes:
    """Show that `name` knows the credential, for this one request or advertisement."""
    if not credential:
        return b""
    key = blake2b(credential.encode(), digest_size=32).digest()
    return blake2b(what + name.encode(), key=key, digest_size=PROOF_BYTES).digest()


def proves_any(proof: bytes, credentials: Iterable[str], what: bytes, name: NodeId) -> bool:
    """Whether the proof was made with one of these."""
    return any(compare_digest(proof, prove(one, what, name)) for one in credentials if proof)


def in_realms(realms: Iterable[str], claimed: str, address: UdpAddress) -> bool:
    """Whether a realm matches: a network (10.0.0.0/8) the address, a word the realm claimed."""
    return any(_in_realm(realm, claimed, address) for realm in realms)


def _in_realm(realm: str, claimed: str, address: UdpAddress) -> bool:
    try:
        network = ip_network(realm, strict=False)
    except ValueError:
        return realm == claimed
    try:
        return ip_address(address.host.partition("%")[0]) in network
    except ValueError:  # a host that is no number is in no network
        return False


class Cookies:
    """Tells whether an address answers, without memory: a keyed hash of who, where and when."""

    def __init__(self, rng: Random) -> None:
        self._key = rng.randbytes(32)

    def make(self, name: NodeId, address: UdpAddress, now: float) -> bytes:
        """What only the owner of that address gets to see."""
        return self._at(name, address, int(now // COOKIE_LIFE))

    def holds(self, cookie: bytes, name: NodeId, address: UdpAddress, now: float) -> bool:
        """Whether it is one of ours, and not too old."""
        era = int(now // COOKIE_LIFE)
        return any(compare_digest(cookie, self._at(name, address, then)) for then in (era, era - 1))

    def _at(self, name: NodeId, address: UdpAddress, era: int) -> bytes:
        what = f"{era}/{address.port}/{address.host}/{name}".encode()
        return blake2b(what, key=self._key, digest_size=PROOF_BYTES).digest()
