"""Recipes of discovery: what makes a peer a broker or a BDN, and a visitor that seeks brokers."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from nodes.settings import NodeConfig
from nodes.zone_recipe import CertifiedRights
from overlay.config import Settings
from overlay.errors import ConfigError, SecurityError
from overlay.host import Host, Recipe
from overlay.logs import about
from protocols.discovery import (
    Bdn,
    BdnSettings,
    Broker,
    BrokerSettings,
    DiscoverySettings,
    Requester,
    Usage,
)
from protocols.discovery.config import parse_address
from protocols.discovery.interface import UNKNOWN, Clock, Moment, own_clock
from protocols.timesync import TimeSync

S = TypeVar("S", bound=Settings)

log = logging.getLogger("overlay.discovery")


def add_broker(
    host: Host, config: NodeConfig, usage: Callable[[], Usage], clock: Clock = own_clock
) -> Broker:
    """Let a node advertise itself and answer requests."""
    check_role(host, "broker")
    around = host.surroundings
    return host.add(
        Broker,
        config.section(BrokerSettings),
        here=around.here,
        usage=usage,
        clock=clock,
        may_be=CertifiedRights(around.rights_of).may_be,
    )


def add_bdn(host: Host, config: NodeConfig, clock: Clock = own_clock) -> Bdn:
    """Let a node list brokers."""
    check_role(host, "bdn")
    rights = CertifiedRights(host.surroundings.rights_of)
    return host.add(Bdn, config.section(BdnSettings), clock=clock, may_be=rights.may_be)


def add_requester(host: Host, config: NodeConfig, clock: Clock | None = None) -> Requester:
    """Let a node look for brokers; one without overlay time learns it from the answers."""
    around = host.surroundings
    settings = config.section(DiscoverySettings)
    bdns = tuple(dict.fromkeys(_resolvable(settings.bdns)))
    return host.add(
        Requester,
        msgspec.structs.replace(settings, bdns=bdns),
        here=around.here,
        clock=clock,
        moment=around.clock,
        may_be=CertifiedRights(around.rights_of).may_be,
    )


def overlay_clock(service: TimeSync) -> Clock:
    """Overlay time with the error that the time service states."""

    def clock(now: float) -> Moment:
        standing = service.standing(now)
        error = standing.error if standing.synchronised else UNKNOWN
        return Moment(service.overlay_time(now), error)

    return clock


def requester(config: NodeConfig) -> Recipe:
    """One that looks for brokers, and is a member of nothing: what `overlay discover` runs."""

    def add_protocols(host: Host) -> None:
        add_requester(host, config)

    return add_protocols


def check_role(host: Host, role: str) -> None:
    """Refuse to be what this node's certificate does not allow."""
    rights = host.surroundings.rights_of(host.me)
    if rights is not None and not rights.may_be(role):
        raise SecurityError(
            f"{host.me!r} may not be a {role}: run"
            f" `overlay keys issue {host.me} --role {role} --force`"
        )


def with_settings(config: NodeConfig, kind: type[S], **changed: Any) -> NodeConfig:
    """The same configuration with some settings of one section changed."""
    settings = {
        name: msgspec.structs.replace(section, **changed) if isinstance(section, kind) else section
        for name, section in config.settings.items()
    }
    return replace(config, settings=settings)


def resolved(addresses: Iterable[str]) -> tuple[str, ...]:
    """The same with numbers for hosts: answers come from numbers, and are compared with them."""
    return tuple(map(_resolve, addresses))


def _resolvable(addresses: Iterable[str]) -> Iterator[str]:
    """Without those that have no number now: a peer that has other ways must not fail for them."""
    for text in addresses:
        try:
            yield _resolve(text)
        except ConfigError as error:
            log.warning("a BDN is not asked: %s", error, extra=about("bdn-not-asked", "discovery"))


def _resolve(text: str) -> str:
    host, port = parse_address(text)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{text!a}: {host!a} cannot be resolved: {error}") from None
    number = str(found[0][4][0])
    return f"[{number}]:{port}" if ":" in number else f"{number}:{port}"
