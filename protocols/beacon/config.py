"""What can be set about beacons, in which unit and why: section `[beacon]` of a config file."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Literal

from overlay.config import Settings, because, bounded, sized
from overlay.errors import ConfigError
from overlay.protocol import Group


class BeaconSettings(Settings, frozen=True, kw_only=True):
    """How a node finds others of its overlay that nobody told it of."""

    enabled: Annotated[
        bool, because("false: neither beacons nor mDNS nor last known peers, seeds only")
    ] = True

    # -- where --------------------------------------------------------------------------------
    ipv4_group: Annotated[
        str, sized(0, 15, "administratively scoped (RFC 2365), so it stays local; empty: none")
    ] = "239.255.90.77"
    ipv6_group: Annotated[
        str,
        sized(0, 45, "ff02:: stays on the link, ff05:: crosses the site's routers; empty: none"),
    ] = "ff02::5a4d:5130"
    port: Annotated[
        int, bounded("port", 1, 65_535, "of both groups; all nodes of a machine share it")
    ] = 17_400

    # -- looking for others ---------------------------------------------------------------------
    query_first: Annotated[
        float, bounded("s", 0.01, 60, "pause after the first query: a datagram may be lost; × 2")
    ] = 0.1
    query_longest: Annotated[
        float, bounded("s", 1, 3600, "where doubling ends: one that is alone costs the LAN little")
    ] = 30.0
    after_seeds: Annotated[
        float, bounded("s", 0, 600, "before the first query of who was given addresses to join")
    ] = 2.0
    fallback_after: Annotated[
        float, bounded("s", 0.05, 600, "nobody answered: last known peers, mDNS, BDNs")
    ] = 0.5
    parallel: Annotated[
        int, bounded("peers", 2, 64, "candidates of the own zone tried at once: some may be dead")
    ] = 8
    patience: Annotated[
        float, bounded("s", 0.5, 600, "a candidate that is no member by then makes room")
    ] = 5.0
    waiting: Annotated[
        int, bounded("peers", 4, 4096, "candidates that wait for their turn; more are dropped")
    ] = 64

    # -- answering ------------------------------------------------------------------------------
    answers: Annotated[
        int,
        bounded("answers", 1, 64, "wanted by a newcomer of a zone, however large: one suffices"),
    ] = 8
    stranger_answers: Annotated[
        int, bounded("answers", 1, 64, "wanted of each other zone: any of them knows more")
    ] = 2
    answer_rate: Annotated[
        float, bounded("1/s", 1, 10_000, "answers of one node: a flood of queries is not echoed")
    ] = 50.0
    name_rate: Annotated[
        float, bounded("1/s", 0.5, 10_000, "beacons heard of one name; nobody needs more")
    ] = 10.0
    host_rate: Annotated[
        float, bounded("1/s", 1, 100_000, "beacons heard of one host, where many nodes may run")
    ] = 200.0

    # -- announcing (Trickle, RFC 6206) ----------------------------------------------------------
    announce_first: Annotated[
        float, bounded("s", 0.05, 600, "shortest interval: after a change the zone is soon heard")
    ] = 1.0
    announce_longest: Annotated[
        float, bounded("s", 1, 86_400, "longest interval: a stable zone costs the LAN next to none")
    ] = 300.0
    redundancy: Annotated[
        int, bounded("beacons", 1, 16, "announcements of a zone heard in an interval that suffice")
    ] = 2

    # -- fallbacks --------------------------------------------------------------------------------
    remembered: Annotated[
        int, bounded("peers", 0, 256, "last known peers kept on disk; 0: none")
    ] = 16
    remember_every: Annotated[
        float, bounded("s", 0.1, 86_400, "between two writes of them: a zone may be lively")
    ] = 30.0
    mdns: Annotated[
        Literal["auto", "always", "never"],
        because("auto: who is alone, and delegates; the library costs 5 MB and a thread"),
    ] = "auto"

    def check(self) -> None:
        """The groups are groups, and the shorter times are shorter."""
        for version, text in ((4, self.ipv4_group), (6, self.ipv6_group)):
            if text and not _is_group(text, version):
                raise ConfigError(
                    f"ipv{version}_group = {text!r} is no multicast address of IPv{version}:"
                    f" take {'239.255.90.77' if version == 4 else 'ff02::5a4d:5130'}"
                )
        for short, long in (
            ("query_first", "query_longest"),
            ("announce_first", "announce_longest"),
        ):
            if getattr(self, short) > getattr(self, long):
                raise ConfigError(f"{short} is over {long}: lower {short} or raise {long}")

    def groups(self) -> dict[int, Group]:
        """The groups that are in use, by version of IP."""
        told = ((4, self.ipv4_group), (6, self.ipv6_group))
        return {version: Group(host, self.port) for version, host in told if host}


def _is_group(text: str, version: int) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return address.version == version and address.is_multicast
