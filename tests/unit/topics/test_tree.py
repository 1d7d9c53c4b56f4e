"""Many subscribers: chunks go down a tree, and no branch without anybody interested is taken."""

from __future__ import annotations

from overlay.ids import vid_from_wire, vid_of, vid_to_wire
from protocols.topics.messages import Ack, Data, TreeData
from protocols.topics.modes import Mode
from tests.recording import Recorded
from tests.unit.topics.node import LIFE, STREAM, TOPIC, TopicsNode, pack, read, sends

NAMES = tuple(f"n{place}" for place in range(12))


def trees(done: list[Recorded]) -> list[tuple[str, TreeData]]:
    return [(one.to, one.msg) for one in sends(done) if isinstance(one.msg, TreeData)]


def within(name: str, msg: TreeData) -> bool:
    start, upto, place = vid_from_wire(msg.start), vid_from_wire(msg.upto), vid_of(name)
    return (place - start) % (1 << 128) < (upto - start) % (1 << 128)


def test_few_get_it_directly_many_by_a_tree_and_it_does_not_flap() -> None:
    node = TopicsNode(tree_from=4, tree_until=2)
    node.links.peers = NAMES[:3]
    out, _ = node.serve(*NAMES[:3], reliability="nack")
    assert len(sends(node.put(out, b"1"), Data)) == 3
    node.says(NAMES[3], TOPIC)
    done = node.put(out, b"2")
    assert sends(done, Data) == []
    assert trees(done)
    node.says(NAMES[3])
    assert trees(node.put(out, b"3")), "three: neither few nor many"
    node.says(NAMES[2])
    assert trees(node.put(out, b"4")) == []


def test_arcs_cover_all_who_are_interested_once_and_nobody_else_is_asked() -> None:
    node = TopicsNode(*NAMES, tree_from=3, tree_until=2)
    node.links.peers = NAMES[:5]
    interested = NAMES[2:9]
    out, _ = node.serve(*interested, reliability="nack")
    node.counts.forwarded = 0
    branches = trees(node.put(out, b"1"))
    for name in interested:
        assert sum(within(name, msg) for _, msg in branches) == 1, name
    for head, msg in branches:
        assert within(head, msg)
        assert any(within(name, msg) for name in interested)
        assert not within("me", msg)
        assert (msg.root, msg.hops, msg.payload) == ("me", 1, pack(b"1"))
    assert node.counts.forwarded == len(branches)


def test_a_node_hands_its_arc_on_and_takes_what_it_wants() -> None:
    node = TopicsNode("pub", *NAMES, tree_from=3, tree_until=2)
    node.links.peers = NAMES
    for name in NAMES[:6]:
        node.says(name, TOPIC)
    one = node.subscribe()
    msg = TreeData(
        "pub", STREAM, TOPIC, Mode.ORDERED, 1, 1, 1, 0.0, 0,
        vid_to_wire(vid_of("pub") + 1), vid_to_wire(vid_of("pub")), 3, "pub", pack(b"1"),
    )  # fmt: skip
    branches = trees(node.receive("pub", msg))
    assert read(one) == [b"1"]
    for name in NAMES[:6]:
        assert sum(within(name, part) for _, part in branches) == 1
    assert {part.hops for _, part in branches} == {4}
    assert not any(within("me", part) or within("pub", part) for _, part in branches)
    assert node.topics.streams[0].source == "pub"


def test_a_node_without_interest_hands_on_all_the_same() -> None:
    node = TopicsNode("pub", *NAMES)
    node.links.peers = NAMES
    node.says("n3", TOPIC)
    msg = TreeData(
        "pub", STREAM, TOPIC, Mode.NACK, 1, 1, 1, 0.0, 0,
        vid_to_wire(vid_of("pub") + 1), vid_to_wire(vid_of("pub")), 1, "pub", pack(b"1"),
    )  # fmt: skip
    ((_, part),) = trees(node.receive("pub", msg))
    assert within("n3", part)
    assert node.topics.streams == []


def test_in_ack_mode_what_a_tree_lost_is_sent_directly() -> None:
    node = TopicsNode(tree_from=3, tree_until=2)
    node.links.peers = NAMES[:3]
    out, _ = node.serve(*NAMES[:3])
    done = node.put(out, b"1", b"2")
    assert sends(done, Data) == []
    node.now = 1.0
    again = node.receive("n1", Ack(*out.key, LIFE, 0, ((1, 1),)))
    assert [(one.to, one.msg.first) for one in sends(again, Data)] == [("n1", 1)]  # type: ignore[attr-defined]
