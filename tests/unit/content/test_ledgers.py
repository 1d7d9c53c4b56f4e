"""Ledgers between two nodes: greetings, changes in their order, and the whole when one is lost."""

from __future__ import annotations

from msgspec.structs import replace

from overlay.predicates import Constraint
from overlay.protocol import LinkLost
from protocols.content import ContentSettings, NeighbourDown, NeighbourUp
from protocols.content.ledger import line_hash, packed
from protocols.content.machine import BEAT
from protocols.content.messages import Again, Change, Greeting, Page
from tests.recording import Emit, Send
from tests.unit.content.node import BROKER, Node, ad, changes, events, greeting, sends, sub
from tests.unit.content.world import World, linked


def test_a_new_neighbour_is_greeted_and_its_ledger_is_asked_for() -> None:
    node = Node()
    assert node.hear("n1", greeting(hears=False, series=0)) == [
        Send("n1", Greeting("broker", 5.0, 0, 0, packed(0), hears=True))
    ]
    assert node.content.neighbours() == (), "it may not hear this node"
    done = node.hear("n1", greeting())
    ledger = node.content.router.readers["n1"].ledger
    assert done == [
        Emit(NeighbourUp("n1")),
        Send("n1", Greeting("broker", 5.0, ledger.series, 0, packed(0), hears=True)),
        Send("n1", Again(0)),
    ]


def test_a_link_that_carries_one_way_alone_goes_down() -> None:
    node = Node()
    node.meet("n1")
    for _ in range(6):
        node.now += 0.9
        node.hear("n1", greeting(hears=False))
        node.timer(BEAT)
    assert node.content.neighbours() == ()
    node.hear("n1", greeting(hears=False))
    assert node.content.neighbours() == ()
    node.hear("n1", greeting())
    assert node.content.neighbours() == ("n1",)


def test_who_asks_is_told_everything_and_then_changes() -> None:
    node = Node()
    node.call("advertise", "a", Constraint.parse("x > 0"))
    node.hear("n1", greeting())
    line = ad("me/a", "x > 0", "me", epoch=100_000)
    series = node.content.router.readers["n1"].ledger.series
    assert node.hear("n1", Again(0)) == [Send("n1", Page(series, 1, 0, True, (line,)))]
    assert node.hear("n1", Again(0)) == [], "twice at once is once too often"
    done = node.call("unadvertise", "a")
    assert sends(done, Change) == [("n1", Change(series, 2, (), ("me/a",)))]


def test_nobody_is_told_what_came_and_went_in_one_tick() -> None:
    node = Node()
    node.meet("n1")
    node.content.advertise("a", Constraint.parse("x > 0"), node.now)
    node.content.unadvertise("a", node.now)
    assert sends(node.done(), Change) == []


def test_a_lost_change_is_noticed_by_the_next_one() -> None:
    node = Node()
    node.meet("n1", "n2")
    node.stamps["n1"] += 1  # one is lost
    node.now += 1.0
    assert node.tell("n1", ad("p/1", "x > 0", "n1")) == [Send("n1", Again(7))]
    done = node.hear("n1", Page(7, 9, 0, last=True, advertisements=(ad("p/1", "x > 0", "n1"),)))
    assert changes(done) == {"n2": ["+p/1"]}
    assert node.hear("n1", Change(7, 9, (ad("p/2", "x > 0", "n1"),))) == [], "it came twice"


def test_a_greeting_with_another_digest_asks_for_the_ledger() -> None:
    node = Node()
    node.meet("n1")
    node.now += 1.0
    line = ad("p/1", "x > 0", "n1")
    node.tell("n1", line)
    digest = packed(line_hash(line)[0])
    assert sends(node.hear("n1", greeting(stamp=2, digest=digest)), Again) == []
    assert sends(node.hear("n1", greeting(stamp=2)), Again) == [("n1", Again(7))]


def test_pages_replace_the_copy_with_the_last_one() -> None:
    node = Node()
    node.meet("n1")
    node.tell("n1", ad("p/old", "x > 0", "n1"), ad("p/kept", "x < 0", "n1"))
    one = ad("p/kept", "x < 0", "n1")
    assert node.hear("n1", Page(8, 5, 0, False, (one,))) == []
    done = node.hear("n1", Page(8, 5, 1, True, (ad("p/new", "y > 0", "n1"),)))
    assert [type(event).__name__ for event in events(done)] == [
        "AdvertisementRemoved",
        "AdvertisementAdded",
    ]
    assert [one.id for one in node.content.advertisements()] == ["p/kept", "p/new"]


def test_a_page_too_few_changes_nothing() -> None:
    node = Node()
    node.meet("n1")
    assert node.hear("n1", Page(8, 5, 1, True, (ad("p/new", "y > 0", "n1"),))) == []
    assert not list(node.content.advertisements())


def test_a_long_ledger_goes_in_pages() -> None:
    node = Node(replace(BROKER, page_bytes=1024))
    for number in range(100):
        node.call(
            "advertise", f"a{number}", Constraint.parse(f"x > {number}, y < {number}"), whole=True
        )
    node.hear("n1", greeting())
    pages = [msg for _, msg in sends(node.hear("n1", Again(0)), Page)]
    assert len(pages) > 3
    assert [page.page for page in pages] == list(range(len(pages)))  # type: ignore[attr-defined]
    assert [page.last for page in pages][-2:] == [False, True]  # type: ignore[attr-defined]
    assert sum(len(page.advertisements) for page in pages) == 100  # type: ignore[attr-defined, misc]


def test_a_silent_neighbour_is_lost_with_all_it_told() -> None:
    node = Node()
    node.meet("n1", "n2")
    node.tell("n1", ad("p/1", "x > 0", "n1"))
    node.tell("n2", sub("s/1", "x > 5", "n2"))
    node.now += 4.0
    node.hear("n2", greeting(stamp=node.stamps["n2"], digest=packed(0)))
    node.now += 2.0
    done = node.timer(BEAT)
    assert changes(done) == {"n2": ["-p/1"]}
    assert NeighbourDown("n1") in events(done)
    assert node.content.neighbours() == ("n2",)
    assert node.content.counts.neighbours_lost == 1


def test_a_broken_link_shortens_the_lease() -> None:
    node = Node(ContentSettings(role="broker", lease=100.0, patience=2.0))
    node.meet("n1")
    node.content.event_handlers()[LinkLost](LinkLost("n1"), node.now)
    (asked,) = sends(node.done(), Greeting)
    assert asked[1].reply  # type: ignore[attr-defined]
    node.now += 1.9
    node.timer(BEAT)
    assert node.content.neighbours() == ("n1",)
    node.now += 0.2
    node.timer(BEAT)
    assert node.content.neighbours() == ()


def test_a_goodbye_ends_the_link_at_once() -> None:
    node = Node()
    node.meet("n1")
    assert events(node.hear("n1", greeting(lease=0.0))) == [NeighbourDown("n1")]


def test_two_that_agree_say_one_word_per_beat() -> None:
    world = World()
    linked(world, [("a", "b"), ("b", "c")])
    for number in range(20):
        world.call("a", "advertise", f"p{number}", Constraint.parse(f"x > {number}"), whole=True)
        world.call("c", "subscribe", f"s{number}", Constraint.parse(f"x > {number}"))
    world.pass_time(3.0)
    world.sent.clear()
    world.pass_time(10.0)
    assert all(isinstance(msg, Greeting) for _, _, msg in world.sent)
    assert len(world.sent) <= 4 * 12
