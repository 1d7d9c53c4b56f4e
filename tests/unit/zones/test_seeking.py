"""Finding the management zone: whom a delegate asks, whom it joins, and what others tell it."""

from __future__ import annotations

import pytest

from overlay.errors import RemoteProtocolError
from overlay.protocol import ContactLearned, PeerMet
from protocols.zones.contacts import REMEMBERED, ContactBook, choose, pack, unpack
from protocols.zones.messages import UNASKED, Contact, Contacts, ContactsRequest
from tests.recording import Emit, Send, Store
from tests.unit.zones.node import FixedMembership, ZonesNode


def requests(node: ZonesNode) -> dict[str, int]:
    return {
        send.to: send.msg.id
        for send in node.sent(ContactsRequest)
        if isinstance(send.msg, ContactsRequest)
    }


def test_contacts_travel_as_text() -> None:
    contacts = [Contact("a", ("tcp://1.2.3.4:5", "tcp://[::1]:6")), Contact("b")]
    assert pack(contacts) == "a tcp://1.2.3.4:5 tcp://[::1]:6\nb"
    assert unpack(pack(contacts)) == contacts
    many = [Contact("n" * 60 + str(index), ("tcp://" + "h" * 60,)) for index in range(8)]
    assert len(pack(many).encode()) <= 1000
    assert unpack(pack(many)) == many[:7]


@pytest.mark.parametrize(
    "text", ["", "\n\n", "a\x07b tcp://x:1", "a  b", "n" * 65, "a " + "e" * 300]
)
def test_text_that_nobody_packed_names_nobody(text: str) -> None:
    assert unpack(text) == []


def test_a_book_forgets_the_oldest() -> None:
    book = ContactBook(f"n{index}" for index in range(REMEMBERED))
    book.learn(Contact("n0", ("tcp://x:1",)))
    book.learn(Contact("new"))
    assert "n1" not in book.names()
    assert book.dropped == 1
    assert book.latest(2) == (Contact("new"), Contact("n0", ("tcp://x:1",)))
    book.learn(Contact("n0"))
    assert book.endpoints("n0") == ("tcp://x:1",), "hearsay without an address forgot one"


def test_a_zone_knows_supervisors_and_delegates_of_several_zones() -> None:
    view = FixedMembership("@management", "me")
    for name in ("s1", "s2", "s3"):
        view.put(name, 1, roles="supervisor")
    for zone in ("b", "c"):
        for index in range(2):
            view.put(f"{zone}{index}", 1, roles="delegate", zone=zone)
    view.put("mate", 1, roles="delegate", zone="hall")
    names = [contact.name for contact in choose(view, "hall", 5)]
    assert len({name for name in names if name[0] == "s"}) == 2
    assert {name[0] for name in names[2:4]} == {"b", "c"}
    assert names == [contact.name for contact in choose(view, "hall", 5)]
    everybody = [contact.name for contact in choose(view, "hall", 99)]
    assert sorted(everybody) == ["b0", "b1", "c0", "c1", "s1", "s2", "s3"]
    view.drop(names[2])
    assert [one.name for one in choose(view, "hall", 5)][:2] == names[:2]


def test_a_new_delegate_asks_all_it_knows_and_joins_who_is_inside() -> None:
    node = ZonesNode(contacts=["x", "y", "me"])
    node.pass_time(2.0)
    node.effects.drain()
    node.enter()
    asked = requests(node)
    assert sorted(asked) == ["x", "y"]
    node.receive("x", Contacts(asked["x"], True))
    assert node.management.asked == ["x"]
    node.receive("y", Contacts(asked["y"], False, (Contact("z", ("tcp://z:1",)),)))
    assert node.management.asked == ["x"], "a Join on hearsay"
    effects = node.effects.drain()
    assert [effect.event for effect in effects if isinstance(effect, Emit)] == [
        ContactLearned("z", ("tcp://z:1",))
    ]
    hearsay = [one for one in effects if isinstance(one, Send)]
    assert [one.to for one in hearsay] == ["z"]


def test_two_who_name_each_other_are_not_asked_for_ever() -> None:
    node = ZonesNode(contacts=["x"])
    node.pass_time(2.0)
    node.effects.drain()
    node.enter()
    first = requests(node)
    node.receive("x", Contacts(first["x"], False, (Contact("y"),)))
    second = requests(node)
    node.receive("y", Contacts(second["y"], False, (Contact("x"),)))
    assert node.sent() == []


def test_who_is_alone_asks_again_and_again_with_longer_pauses() -> None:
    node = ZonesNode(contacts=["x"])
    node.serve()
    node.pass_time(2.0)
    eager = len(node.sent(ContactsRequest))
    node.pass_time(100.0)
    node.sent()
    node.pass_time(100.0)
    patient = len(node.sent(ContactsRequest))
    assert 1 <= eager <= 4
    assert 8 <= patient <= 13  # each 10 s, give or take a quarter


def test_who_is_known_to_be_inside_is_not_asked() -> None:
    node = ZonesNode(contacts=["x"])
    node.serve()
    node.delegate_of("b", "x")
    node.pass_time(60.0)
    assert node.sent(ContactsRequest) == []


def test_an_address_that_answered_is_asked_soon_by_who_is_alone() -> None:
    node = ZonesNode()
    node.serve()
    node.pass_time(100.0)
    node.effects.drain()
    node.hear(PeerMet("seed", ("tcp://seed:1",)))
    node.pass_time(0.5)
    assert list(requests(node)) == ["seed"]


def test_fellow_delegates_are_asked_first() -> None:
    node = ZonesNode(contacts=["x1", "x2", "x3", "x4", "x5"])
    node.joins("mate", 50, roles="delegate")
    node.pass_time(2.0)
    node.effects.drain()
    node.enter()
    asked = requests(node)
    assert "mate" in asked
    assert len(asked) == 4


def test_contacts_that_delegates_published_are_used_when_they_are_gone() -> None:
    node = ZonesNode(born=900)
    node.joins("a", 100, roles="delegate", management="far tcp://far:1")
    node.joins("b", 200, roles="delegate")
    node.pass_time(2.0)
    node.fails("a")
    node.fails("b")
    node.pass_time(1.0)
    node.effects.drain()
    node.enter()
    assert list(requests(node)) == ["far"]


def test_contacts_of_an_earlier_life_are_used() -> None:
    node = ZonesNode(kept={b"contacts": b"far tcp://far:1\nbroken\x07"})
    node.pass_time(2.0)
    node.effects.drain()
    node.enter()
    assert list(requests(node)) == ["far"]


def test_a_delegate_keeps_contacts_on_disk_and_tells_its_zone() -> None:
    node = ZonesNode()
    node.serve()
    node.delegate_of("b", "x")
    node.pass_time(1.1)
    stores = [effect for effect in node.effects.drain() if isinstance(effect, Store)]
    assert stores == [Store(b"contacts", b"x tcp://x:1", b"contacts")]
    assert node.base.attributes("me")["management"] == "x tcp://x:1"
    node.zones.leave_management(node.now)
    assert "management" not in node.base.attributes("me")


def test_any_member_tells_its_delegates_and_whom_it_remembers() -> None:
    node = ZonesNode(born=900, contacts=["x"])
    node.joins("a", 100, roles="delegate", management="far tcp://far:1")
    node.joins("b", 200, roles="delegate")
    node.pass_time(2.0)
    node.effects.drain()
    node.receive("somebody", ContactsRequest(7))
    told = Contacts(
        7,
        False,
        (
            Contact("a", ("tcp://a:1",)),
            Contact("b", ("tcp://b:1",)),
            Contact("far", ("tcp://far:1",)),
            Contact("x"),
        ),
    )
    assert node.sent() == [Send("somebody", told)]


def test_a_delegate_says_that_it_is_inside() -> None:
    node = ZonesNode()
    node.serve()
    node.delegate_of("b", "x")
    node.receive("somebody", ContactsRequest(7))
    assert Send("somebody", Contacts(7, True, (Contact("x", ("tcp://x:1",)),))) in node.sent()


def test_a_supervisor_without_a_zone_answers_too() -> None:
    node = ZonesNode(base=False, contacts=["x"])
    node.receive("somebody", ContactsRequest(7))
    assert node.sent() == [Send("somebody", Contacts(7, False, (Contact("x"),)))]


def test_answers_that_nobody_asked_for_change_nothing() -> None:
    node = ZonesNode(contacts=["x"])
    node.pass_time(2.0)
    node.effects.drain()
    node.enter()
    asked = requests(node)
    node.receive("evil", Contacts(asked["x"], True))
    node.receive("x", Contacts(12345, True))
    node.receive("evil", Contacts(UNASKED, True, (Contact("junk"),)))
    assert node.management.asked == []
    assert node.zones.counts.late == 2
    assert node.zones.counts.strangers == 1
    assert node.sent() == []


def test_bad_names_and_ids_are_refused() -> None:
    node = ZonesNode(contacts=["x"])
    node.pass_time(2.0)
    node.effects.drain()
    node.enter()
    asked = requests(node)
    with pytest.raises(RemoteProtocolError) as refused:
        node.receive("x", Contacts(asked["x"], False, (Contact("a\x07"),)))
    assert refused.value.reason == "zones-bad-name"
    with pytest.raises(RemoteProtocolError) as refused:
        node.receive("x", ContactsRequest(UNASKED))
    assert refused.value.reason == "zones-bad-id"
