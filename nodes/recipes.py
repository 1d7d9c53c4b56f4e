"""Recipes: which protocols one kind of node runs, in the order in which they start."""

from nodes.colony_recipe import add_colony
from nodes.discovery_recipe import add_requester, check_role, overlay_clock
from nodes.resources_recipe import add_resources
from nodes.settings import NodeConfig
from nodes.zone_recipe import CertifiedRights, ZoneSetup, add_zones
from nodes.zone_recipe import supervisor as supervise
from overlay.errors import ConfigError, SecurityError
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.net.addresses import parse_endpoint
from overlay.protocol import Scope
from protocols.beacon import Beacon, BeaconSettings
from protocols.content import Content, ContentSettings
from protocols.dht import Dht, DhtSettings
from protocols.discovery import Broker
from protocols.echo import Echo, EchoConfig
from protocols.gateways import Gateways, GatewaysSettings
from protocols.membership import Membership, MembershipSettings
from protocols.mobility import Follower, Keeper, Mobility, MobilitySettings
from protocols.resources.interface import RoundTrip, unknown
from protocols.routing import Routing, RoutingSettings
from protocols.timesync import TimeSettings, TimeSync
from protocols.topics.config import TopicsSettings
from protocols.topics.machine import Topics
from protocols.topology import Topology, TopologySettings
from protocols.zones import MANAGEMENT, Zones, ZonesSettings


def peer(config: NodeConfig, round_trip: RoundTrip = unknown) -> Recipe:
    """A member of its zone: what `overlay peer` runs."""

    def add_protocols(host: Host) -> None:
        host.add(Echo, config.section(EchoConfig))
        zone = host.surroundings.zone
        if not zone:
            raise SecurityError(f"{host.me!r} has no single zone in its certificate: say --zone")
        base = add_zone(host, zone, config)
        zones = add_zones(host, zone_setup(host, config), base)
        clock = overlay_clock(add_time(host, config, base, zones))
        add_requester(host, config, clock)
        add_topics(host, zone, config, base)
        add_dht(host, config, base, zones)
        add_resources(host, config, round_trip)
        add_content(host, config)
        add_colony(host, config)
        add_beacon(host, config, base, zones)

    return add_protocols


def supervisor(config: NodeConfig) -> Recipe:
    """One of the management zone only: what `overlay supervisor` runs."""

    def add_protocols(host: Host) -> None:
        host.add(Echo, config.section(EchoConfig))
        supervise(zone_setup(host, config))(host)
        clock = overlay_clock(add_time(host, config, None, host.protocol(Zones)))
        add_requester(host, config, clock)
        add_beacon(host, config, host.protocol(Membership, MANAGEMENT), host.protocol(Zones))

    return add_protocols


def visitor(config: NodeConfig) -> Recipe:
    """One that asks and answers, and is a member of nothing: what `overlay echo` runs."""

    def add_protocols(host: Host) -> None:
        host.add(Echo, config.section(EchoConfig))

    return add_protocols


def add_zone(host: Host, zone: Scope, config: NodeConfig) -> Membership:
    """Make a node a member of a zone: in its views, with links, and on its routes."""
    around = host.surroundings
    membership = host.add(
        Membership,
        config.section(MembershipSettings),
        zone,
        zone=zone,
        here=around.here,
        may_join=CertifiedRights(around.rights_of).may_join,
    )
    links = host.add(Topology, config.section(TopologySettings), zone, members=membership.view)
    host.add(Routing, config.section(RoutingSettings), zone, members=membership.view, links=links)
    return membership


def add_topics(host: Host, zone: Scope, config: NodeConfig, base: Membership) -> None:
    """Let a member publish and subscribe, and stand for its zone where it is a gateway."""
    host.add(
        Topics,
        config.section(TopicsSettings),
        base=base,
        links=host.protocol(Topology, zone),
        book=host.protocol(Gateways),
        may=CertifiedRights(host.surroundings.rights_of).may_use,
        overlay_time=host.protocol(TimeSync).overlay_time,
    )


def add_dht(host: Host, config: NodeConfig, base: Membership, zones: Zones) -> None:
    """Let a member keep keys of the table, and ask."""
    around = host.surroundings
    settings = config.section(DhtSettings)
    if settings.serve and settings.storage == "sqlite" and config.state is None:
        raise ConfigError(
            "dht.storage = sqlite keeps values on disk: say where with --state FOLDER"
        )
    host.add(
        Dht,
        settings,
        base=base,
        zones=zones,
        may=CertifiedRights(around.rights_of).may_use_table,
        here=around.here,
        router=host.protocol(Routing, around.zone),
    )


def add_content(host: Host, config: NodeConfig) -> None:
    """Let a node publish and subscribe by content, and route for others where it is a broker."""
    settings = config.section(ContentSettings)

    def links() -> list[NodeId]:
        """Those of the broker network, and where that is wanted the zone's own."""
        known = host.protocol(Broker).neighbours() if host.has(Broker) else []
        if settings.zone_links:
            known += host.protocol(Topology, host.surroundings.zone).neighbours()
        return known

    if settings.role == "broker":
        check_role(host, "broker")
    rights = CertifiedRights(host.surroundings.rights_of)
    host.add(Content, settings, links=links, may_be=rights.may_be)
    add_mobility(host, config)


def add_mobility(host: Host, config: NodeConfig) -> None:
    """Let a client move, and a broker serve those who do and keep for who is away."""
    settings = config.section(MobilitySettings)
    content = host.protocol(Content)
    may_be = CertifiedRights(host.surroundings.rights_of).may_be
    host.add(Mobility, settings, content=content, may_be=may_be)
    if not content.is_broker:
        host.add(Follower, settings)
        return
    if settings.storage == "sqlite" and config.state is None:
        raise ConfigError(
            "mobility.storage = sqlite keeps publications on disk: say where with --state FOLDER"
        )
    here = host.surroundings.here
    host.add(Keeper, settings, content=content, may_be=may_be, here=here)


def add_time(host: Host, config: NodeConfig, base: Membership | None, zones: Zones) -> TimeSync:
    """Let a node agree with its zone on the time, and with all others; a supervisor has none."""
    around = host.surroundings
    settings = config.section(TimeSettings)
    servers = (parse_endpoint(text).udp for text in settings.servers)
    service = host.add(
        TimeSync,
        settings,
        members=None if base is None else base.view,
        zones=zones,
        where=around.udp_of,
        servers=tuple(filter(None, servers)),
        clock=around.clock,
    )
    host.overlay_clock = service.reading
    return service


def add_beacon(host: Host, config: NodeConfig, home: Membership, zones: Zones) -> None:
    """Let a node find others, and be found, with no address given; unless that is turned off."""
    settings = config.section(BeaconSettings)
    around = host.surroundings
    if settings.enabled:
        host.add(
            Beacon,
            settings,
            overlay=around.overlay,
            authority=around.authority,
            view=home.view,
            here=around.here,
            zones=lambda: len(zones.zones()),
            told=bool(config.seeds),
        )


def zone_setup(host: Host, config: NodeConfig) -> ZoneSetup:
    """What zones need to know of this node; the management zone has the same settings."""
    around = host.surroundings
    rights = CertifiedRights(around.rights_of)
    membership = config.section(MembershipSettings)
    return ZoneSetup(
        zones=config.section(ZonesSettings),
        gateways=config.section(GatewaysSettings),
        membership=membership,
        management=membership,
        here=around.here,
        may_join=rights.may_join,
        may_be=rights.may_be,
        may_use=rights.may_use,
    )
