"""The settings of the three roles: `[discovery]` of who asks, `[broker]` and `[bdn]`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from overlay.config import Settings, because, bounded, sized
from overlay.errors import ConfigError
from overlay.protocol import Group, UdpAddress

TOPIC = "Services/BrokerDiscoveryNodes/BrokerAdvertisement"
"""Where brokers advertise to all BDNs that subscribe (§2.3)."""

Words: TypeAlias = tuple[str, ...]
GroupAddress: TypeAlias = Annotated[
    str, sized(3, 300, "HOST:PORT of the multicast group by which brokers are found without a BDN")
]
DEFAULT_GROUP = "239.255.74.61:7461"


def parse_address(text: str) -> UdpAddress:
    """HOST:PORT, or [IPv6]:PORT."""
    host, colon, port = text.removeprefix("udp://").removeprefix("tcp://").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise ConfigError(f"{text!a}: give HOST:PORT")
    return UdpAddress(host, int(port))


def parse_group(text: str) -> Group:
    """The multicast group of that address."""
    return Group(*parse_address(text))


class DiscoverySettings(Settings, frozen=True, kw_only=True):
    """How somebody looks for the nearest broker."""

    # -- whom to ask ----------------------------------------------------------------------------
    bdns: Annotated[Words, sized(0, 64, "HOST:PORT of BDNs, in the order in which to ask")] = ()
    multicast: Annotated[
        Literal["never", "fallback", "always"],
        because("when to ask by multicast: if nobody else answers, or at once as well (§9)"),
    ] = "fallback"
    group: GroupAddress = DEFAULT_GROUP
    realm: Annotated[str, sized(0, 64, "the network realm that requests claim")] = ""
    credential: Annotated[str, sized(0, 256, "shown to brokers and BDNs that want one")] = ""
    proofs: Annotated[
        int, bounded("brokers", 1, 64, "that may ask us to prove our address, for each request")
    ] = 8

    # -- collecting -----------------------------------------------------------------------------
    timeout: Annotated[
        float, bounded("s", 0.2, 60, "all of it, pings too; §6 collects for 4 to 5 s")
    ] = 4.0
    max_responses: Annotated[
        int, bounded("responses", 1, 10_000, "the first so many are considered (§9)")
    ] = 100
    retry: Annotated[
        float, bounded("s", 0.02, 10, "a BDN's silence before it is asked again: a WAN's RTT")
    ] = 0.15
    retry_least: Annotated[
        float, bounded("s", 0.01, 10, "between two attempts once somebody answered")
    ] = 0.06
    tries: Annotated[
        int, bounded("tries", 1, 16, "unanswered tries before the next BDN: two may be lost")
    ] = 3
    fruitless: Annotated[
        int,
        bounded(
            "attempts",
            1,
            32,
            "without news before the silent are given up; twice as many under loss",
        ),
    ] = 4
    group_step: Annotated[
        float, bounded("s", 0.002, 1, "first pause between attempts by multicast; a LAN's RTT")
    ] = 0.01

    # -- choosing -------------------------------------------------------------------------------
    targets: Annotated[
        int, bounded("brokers", 1, 64, "the target set that is pinged: §6 has 10, §10 5 to 20")
    ] = 10
    delay_share: Annotated[
        float, bounded("share", 0, 1, "of the estimated delay against the load, for the target set")
    ] = 0.7
    delay_scale: Annotated[
        float, bounded("s", 0.0001, 10, "a delay that halves the score; the clocks' error is 1-20")
    ] = 0.02
    weight_free_memory: Annotated[
        float, bounded("weight", 0, 100, "the free share of memory: higher is better")
    ] = 1.0
    weight_total_memory: Annotated[
        float, bounded("weight", 0, 100, "memory, against the largest among the candidates")
    ] = 0.25
    weight_cpu: Annotated[float, bounded("weight", 0, 100, "the idle share of the CPU")] = 1.0
    weight_connections: Annotated[
        float, bounded("weight", 0, 100, "few connections: a newly added broker has none (§8)")
    ] = 1.0
    weight_links: Annotated[
        float, bounded("weight", 0, 100, "few links to other brokers: each costs it work")
    ] = 0.25

    # -- pinging --------------------------------------------------------------------------------
    pings: Annotated[
        int, bounded("pings", 1, 64, "of each target: the least of several leaves queues out")
    ] = 6
    ping_gap: Annotated[float, bounded("s", 0.001, 1, "between two pings of one target")] = 0.005
    ping_slack: Annotated[
        float, bounded("s", 0.005, 5, "over 2 × the slowest round trip, then silence is death")
    ] = 0.04
    ping_patience: Annotated[
        float, bounded("s", 0.05, 10, "for silent targets where pings are seen to be lost")
    ] = 0.6
    equal_within: Annotated[
        float, bounded("s", 0, 1, "round trips so close are equal: the idler broker wins")
    ] = 0.0002

    # -- continuous mode ------------------------------------------------------------------------
    every: Annotated[float, bounded("s", 0.1, 86_400, "between two looks around")] = 30.0
    move_share: Annotated[
        float, bounded("share", 0, 1, "of its round trip that another broker must save to move")
    ] = 0.2
    move_least: Annotated[
        float, bounded("s", 0, 10, "and at least so much: jitter of a LAN must not move anybody")
    ] = 0.001
    confirmations: Annotated[
        int, bounded("looks", 1, 16, "in a row in which the same other one must be better")
    ] = 2

    def check(self) -> None:
        """Addresses are addresses, and some weight counts."""
        for text in (*self.bdns, self.group):
            parse_address(text)
        if not sum(self.weights):
            raise ConfigError("all weights are 0: give weight_cpu or another one some weight")

    @property
    def weights(self) -> tuple[float, ...]:
        """Free memory, total memory, CPU, connections, links."""
        return (
            self.weight_free_memory,
            self.weight_total_memory,
            self.weight_cpu,
            self.weight_connections,
            self.weight_links,
        )


class BrokerSettings(Settings, frozen=True, kw_only=True):
    """How a broker advertises itself, and whom it answers."""

    bdns: Annotated[Words, sized(0, 64, "HOST:PORT of BDNs to advertise to")] = ()
    group: GroupAddress = DEFAULT_GROUP
    logical: Annotated[str, sized(0, 64, "its address in the broker network")] = ""
    region: Annotated[str, sized(0, 64, "where it stands, for BDNs of a region")] = ""
    institution: Annotated[str, sized(0, 64, "who runs it")] = ""
    realm: Annotated[str, sized(0, 64, "its network realm")] = ""
    credential: Annotated[str, sized(0, 256, "shown to private BDNs")] = ""
    links: Annotated[Words, sized(0, 64, "names of the brokers it is linked to")] = ()
    lease: Annotated[
        float, bounded("s", 1, 86_400, "BDNs forget it after; it renews three times as often")
    ] = 120.0
    advertise_retry: Annotated[
        float,
        bounded("s", 0.05, 60, "until a BDN acknowledges; doubles up to 5 s"),
    ] = 0.5
    link_lease: Annotated[
        float, bounded("s", 0.5, 3600, "a neighbour that is silent so long is none")
    ] = 30.0
    max_links: Annotated[int, bounded("brokers", 1, 64, "neighbours at most")] = 64
    learned_bdns: Annotated[
        int, bounded("BDNs", 0, 64, "that announced themselves and are advertised to as well")
    ] = 16
    answer_realms: Annotated[
        Words, sized(0, 64, "answer only requests of these networks or realms; none: all")
    ] = ()
    answer_credentials: Annotated[
        Words, sized(0, 64, "answer only who shows one of these; none: everybody")
    ] = ()
    remembered: Annotated[
        int, bounded("requests", 1, 1_000_000, "that are not handled twice: the last 1,000 (§4)")
    ] = 1000
    source_rate: Annotated[
        float, bounded("1/s", 1, 1e6, "requests and pings of one address that are answered")
    ] = 200.0
    total_rate: Annotated[
        float, bounded("1/s", 1, 1e6, "datagrams of all addresses: each answer costs 0.1 ms")
    ] = 4000.0

    def check(self) -> None:
        """Addresses are addresses."""
        for text in (*self.bdns, self.group):
            parse_address(text)


class BdnSettings(Settings, frozen=True, kw_only=True):
    """What a BDN stores, and whom it serves."""

    capacity: Annotated[
        int, bounded("brokers", 1, 1_000_000, "advertisements held: about 2 KB each")
    ] = 10_000
    regions: Annotated[
        Words, sized(0, 64, "store only advertisements of these regions; none: all (§2.3)")
    ] = ()
    realms: Annotated[
        Words, sized(0, 64, "store and serve only these networks or realms; none: all")
    ] = ()
    credentials: Annotated[
        Words, sized(0, 64, "a private BDN: only who shows one of these is served (§2.4)")
    ] = ()
    group: GroupAddress = DEFAULT_GROUP
    announce: Annotated[
        float, bounded("s", 0, 3600, "between announcements to brokers by multicast; 0: none")
    ] = 30.0
    max_lease: Annotated[
        float, bounded("s", 1, 86_400, "an advertisement counts for no longer without renewal")
    ] = 600.0
    probe_rate: Annotated[
        float, bounded("1/s", 0.1, 10_000, "pings of brokers, all together: 10,000 take 200 s")
    ] = 50.0
    replan: Annotated[
        float, bounded("s", 0.05, 60, "a plan of where to inject holds so long, as brokers change")
    ] = 1.0
    max_injections: Annotated[
        int, bounded("brokers", 1, 100_000, "that one request is handed to; the closest first")
    ] = 1000
    remembered: Annotated[
        int, bounded("requests", 1, 1_000_000, "that are not propagated twice")
    ] = 10_000
    held_links: Annotated[
        int,
        bounded("brokers", 0, 4096, "to which links stay open: opening one takes 5 round trips"),
    ] = 128
    hold_every: Annotated[
        float, bounded("s", 0.5, 3600, "a word on each of them; less than net.idle_close (60)")
    ] = 20.0
    source_rate: Annotated[
        float, bounded("1/s", 1, 1e6, "requests and advertisements of one address")
    ] = 200.0
    total_rate: Annotated[
        float, bounded("1/s", 1, 1e6, "of all addresses: each costs about 0.3 ms")
    ] = 4000.0

    def check(self) -> None:
        """The group is an address."""
        parse_address(self.group)
