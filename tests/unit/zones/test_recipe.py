"""The recipe: rights by certificate, and the management zone that starts and stops in time."""

from __future__ import annotations

import pytest

from nodes.zone_recipe import CertifiedRights, ZoneSetup, supervisor, zone_member
from overlay.errors import LocalProtocolError
from overlay.security.rights import Rights
from overlay.sim import Simulator
from protocols.gateways import Gateways
from protocols.membership.machine import Membership
from protocols.zones import MANAGEMENT, SUPERVISOR, Zones

RIGHTS = {
    "member": Rights(zones=("lab",)),
    "boss": Rights(roles=(SUPERVISOR,)),
    "guest": Rights(publish=("guests/*",), subscribe=("**",)),
}


def test_certificates_decide_where_they_are_known() -> None:
    rights = CertifiedRights(RIGHTS.get)
    assert rights.may_join("member", "lab")
    assert not rights.may_join("member", "hall")
    assert rights.may_join("member", MANAGEMENT)
    assert rights.may_join("boss", MANAGEMENT)
    assert not rights.may_join("boss", "lab")
    assert not rights.may_join("guest", MANAGEMENT)
    assert rights.may_be("boss", SUPERVISOR)
    assert not rights.may_be("member", SUPERVISOR)
    assert rights.may_join("unheard-of", "lab")
    assert rights.may_be("unheard-of", SUPERVISOR)
    assert rights.may_use("guest", "publish", "guests/1")
    assert not rights.may_use("guest", "publish", "hall/1")
    assert rights.may_use("guest", "subscribe", "hall/1")
    assert not rights.may_use("member", "subscribe", "hall/1")
    assert rights.may_use("unheard-of", "publish", "hall/1")


def test_a_base_zone_may_not_be_the_management_zone() -> None:
    with pytest.raises(LocalProtocolError, match="reserved"):
        zone_member(MANAGEMENT, ZoneSetup())


def test_who_may_not_enter_the_management_zone_stands_for_nothing() -> None:
    rights = CertifiedRights({"guest": Rights(), "s": RIGHTS["boss"]}.get)
    setup = ZoneSetup(may_join=rights.may_join, may_be=rights.may_be)
    open_door = ZoneSetup()
    sim = Simulator(1)
    sim.add_node("s", supervisor(setup))
    sim.add_node("guest", zone_member("lab", open_door, strangers=["s"]))
    sim.add_node("member", zone_member("hall", open_door, strangers=["s"]))
    sim.run_for(20.0)
    assert [entry.name for entry in sim.protocol("s", Zones).zones()] == ["hall"]
    assert sim.host("s").refusals["zone-not-allowed"] > 0
    assert "guest" not in sim.protocol("s", Membership, MANAGEMENT).view
    assert not sim.protocol("guest", Zones).is_delegate, "it was refused and must let others try"


def test_zones_can_be_removed_from_a_running_node() -> None:
    sim = Simulator(1)
    sim.add_node("a", zone_member("lab", ZoneSetup()))
    sim.run_for(1.0)
    for kind in (Gateways, Zones):
        sim.remove_instance("a", sim.protocol("a", kind))
    sim.run_for(20.0)
    assert [instance.key for instance in sim.host("a").instances] == ["membership@lab"]
    assert list(sim.nodes["a"].effects) == ["membership@lab"]
