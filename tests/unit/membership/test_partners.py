"""With whom a member exchanges news: those to whom links are open, and everybody in time."""

from __future__ import annotations

from overlay.protocol import LinkLost, LinkUp
from protocols.membership.config import MembershipSettings
from protocols.membership.messages import Ack, Gossip, Ping, PingRequest
from tests.unit.membership.member import LEFT, Member, record, sent

LAN = MembershipSettings()
NAMES = tuple(f"n{number}" for number in range(100))
LINKED = NAMES[10 : 10 + LAN.partners]


def linked(*peers: str) -> Member:
    member = Member(*NAMES)
    for peer in peers:
        member.tell(LinkUp(peer))
    return member


def drawn(member: Member, count: int = 4) -> set[str]:
    partners = member.membership._core.partners
    return {name for _ in range(50) for name in partners.draw(count)}


def test_news_and_questions_go_over_links_that_are_open() -> None:
    member = linked(*LINKED)
    ring = member.membership.view.ring()
    near = {*ring.successors("me", 1), *ring.predecessors("me", 1)}
    receivers: set[str] = set()
    for number in range(20):
        member.hear("n0", Gossip((record(f"new{number}"),)))
        while "gossip" in member.effects.timers:
            receivers |= {one.to for one in sent(member.ring("gossip"), Gossip)}
        ring = member.membership.view.ring()
        near |= {*ring.successors("me", 1), *ring.predecessors("me", 1)}
    assert receivers & near, "nobody is forgotten: it has two neighbours"
    assert receivers <= near | set(LINKED)
    helpers = {one.to for one in sent(member.tell(LinkLost("n0")), PingRequest)}
    assert len(helpers) == LAN.helpers
    assert helpers <= set(LINKED)


def test_the_newest_links_are_those_of_partners() -> None:
    member = linked(*NAMES[:50])
    assert drawn(member) == set(NAMES[50 - LAN.partners : 50])


def test_where_links_are_too_few_anybody_will_do() -> None:
    member = linked("n0", "n1", "n2")
    assert len(drawn(member)) > 20
    contacts = {"n0", "n1", "n2"}
    drawings = [contacts.intersection(member.membership._core.partners.draw(4)) for _ in range(50)]
    assert sum(map(len, drawings)) < 2.5 * len(drawings), "whom all met first is not worn out"


def test_a_link_to_a_stranger_counts_once_it_is_a_member() -> None:
    member = linked(*LINKED, "new")
    assert "new" not in drawn(member)
    member.hear("n0", Gossip((record("new"),)))
    assert "new" in drawn(member)


def test_another_link_takes_the_place_of_who_is_gone_or_lost() -> None:
    member = linked("n1", *LINKED)
    member.hear(LINKED[0], Gossip((record(LINKED[0], LEFT),)))
    member.tell(LinkLost(LINKED[1]))
    assert drawn(member) == {"n1", *LINKED[2:]}


def test_each_round_of_probes_ends_with_a_new_partner() -> None:
    member = linked(*LINKED)
    (successor,) = member.membership.view.ring().successors("me", 1)
    others: list[str] = []
    while len(others) < 3 * (LAN.partners + 1):
        for ping in sent(member.ring("probe"), Ping):
            assert isinstance(ping.msg, Ping)
            if ping.to != successor:
                others.append(ping.to)
            digest = member.membership._core.table.digest
            member.hear(ping.to, Ack(ping.msg.sequence, 1, digest))
    assert set(LINKED) <= set(others[: LAN.partners + 1])
    strangers = {name for name in others if name not in LINKED}
    assert len(strangers) == 3, "one for each round"


def test_in_a_small_zone_everybody_is_a_partner() -> None:
    member = Member(*NAMES[: LAN.partners])
    member.tell(LinkUp("n0"))
    assert drawn(member) == set(NAMES[: LAN.partners])
