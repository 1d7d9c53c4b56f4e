"""What requesters, brokers and BDNs send each other (the table is in the package's docstring)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from overlay.ids import WireName
from overlay.protocol import Message, UdpAddress

DIGEST_BYTES = 4  # of a broker's name in lists: two of 256 collide once in 130,000 requests
MOST_DIGESTS = 256
MOST_LINKS = 64
MOST_ATTEMPTS = 63
PADDED_TO = 640  # bytes of an encoded Request: no answer to it may be longer than twice that

RequestId: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
Attempt: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_ATTEMPTS)]
Digests: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=DIGEST_BYTES * MOST_DIGESTS)]
Proof: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=16)]
Nonce: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
Endpoint: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Endpoints: TypeAlias = Annotated[tuple[Endpoint, ...], msgspec.Meta(max_length=4)]
Links: TypeAlias = Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MOST_LINKS)]
Time: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]  # bounds keep NaN out
Error: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e12)]  # s, ± of a time
Lease: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Sequence: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 62))]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Where(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An address for datagrams; without a host it is the one that the datagram came from."""

    host: Annotated[str, msgspec.Meta(max_length=255)] = ""
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 0

    def or_from(self, sender: UdpAddress) -> UdpAddress:
        """The address meant by a datagram of that sender."""
        return UdpAddress(self.host, self.port) if self.host else sender


class Usage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The load of a broker (§5.1c, §9)."""

    connections: Count = 0
    links: Count = 0  # to other brokers
    cpu: Share = 0.0  # of all its cores, lately
    memory_total: Bytes = 0
    memory_used: Bytes = 0


class Advertisement(Message, frozen=True, tag=160):
    """A broker exists (§2.2): where it listens, where it stands, and to whom it is linked."""

    name: WireName
    sequence: Sequence  # a later one replaces an earlier one
    lease: Lease  # s after which it is forgotten; 0: at once
    address: Where = Where()
    endpoints: Endpoints = ()  # transports, hosts and ports
    logical: Text = ""  # its address in the broker network
    region: Text = ""  # geographic
    institution: Text = ""
    realm: Text = ""  # of its network
    links: Links = ()
    proof: Proof = b""  # of a credential, for private BDNs


class AdvertisementAck(Message, frozen=True, tag=161):
    """A BDN stored an advertisement, or did not."""

    sequence: Sequence
    status: Literal["stored", "ignored", "credentials"]
    reason: Text = ""


class BdnAnnouncement(Message, frozen=True, tag=162):
    """A BDN exists, and brokers may advertise there (§2.4)."""

    lease: Lease
    address: Where = Where()
    private: bool = False  # only who shows a credential is served
    realm: Text = ""


class Request(Message, frozen=True, tag=163):
    """I look for the nearest broker (§3)."""

    id: RequestId
    attempt: Attempt = 0  # a higher one is propagated and answered again
    address: Where = Where()
    endpoints: Endpoints = ()  # the requester's transports
    realm: Text = ""
    proof: Proof = b""  # of a credential
    cookie: Proof = b""  # shows that what is sent to our address arrives
    heard: Digests = b""  # brokers that need not answer again
    padding: Annotated[bytes, msgspec.Meta(max_length=PADDED_TO)] = b""


class RequestAck(Message, frozen=True, tag=164):
    """A request arrived at a BDN or a broker, and what becomes of it."""

    id: RequestId
    attempt: Attempt
    status: Literal["prove", "accepted", "credentials", "refused"]
    cookie: Proof = b""
    total: Count = 0  # brokers that it was handed to
    injected: Digests = b""  # and who they are, as far as the list has room
    sent_at: Time | None = None  # overlay time, if the sender knows it
    error: Error = 0.0


class Inject(Message, frozen=True, tag=165):
    """A request on its way through the broker network; its address is proven."""

    requester: WireName
    request: Request
    hops: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 0


class Response(Message, frozen=True, tag=166):
    """I am a broker (§5.1)."""

    id: RequestId
    attempt: Attempt
    sent_at: Time  # overlay time
    usage: Usage
    endpoints: Endpoints = ()
    logical: Text = ""
    region: Text = ""
    institution: Text = ""
    forwarded: Digests = b""  # the brokers that the request was handed on to
    alone: bool = False  # it has no neighbours: nobody else is reached through it
    error: Error = 0.0  # of `sent_at`


class Ping(Message, frozen=True, tag=167):
    """Send this back: a requester measures the round trip."""

    nonce: Nonce  # nobody can answer before it was asked
    sent_at: Time


class Pong(Message, frozen=True, tag=168):
    """As asked."""

    nonce: Nonce
    sent_at: Time


class Probe(Message, frozen=True, tag=169):
    """Send this back: a BDN measures its brokers."""

    nonce: Nonce


class ProbeReply(Message, frozen=True, tag=170):
    """As asked."""

    nonce: Nonce


class BrokerLink(Message, frozen=True, tag=171):
    """We are linked: what a broker tells its neighbours, again and again."""

    lease: Lease
    greeting: bool = False  # please tell me, too


class Hold(Message, frozen=True, tag=172):
    """Nothing: a BDN keeps the link open by which it may hand requests to a broker."""
