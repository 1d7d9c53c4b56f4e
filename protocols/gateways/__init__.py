"""Gateways: which zones are interested in a topic, and which node stands for each of them.

SpiderCast §3.2, the preferred combination: every topic has a *home* in the management zone, the
member responsible for the topic's id on that zone's ring, and a *gateway* in each interested zone,
the member responsible for the topic's salted id on that zone's ring. The home tracks the gateways
and tells them of each other. It also answers which name an id has. No application data moves here.
One instance per node, in the node's own scope, beside `zones`.

Everything that is told is a *ledger*: lines, one for each topic (and gateway), that one node, the
owner, keeps for one other. A line says who publishes or subscribes. Books of ledgers:

    member -DECLARATIONS-> gateway -REGISTRATIONS-> delegate -INTERESTS-> home
                              ^                         ^                   |
                              |        (of any zone)    |     REPLICAS to its ring successor
                              +---------ROSTERS---------+-------------------+
                              +--PROSPECTS-- delegate <------EXISTING-------+

| tag | message       | sent when                            | the receiver                        |
|-----|---------------|--------------------------------------|-------------------------------------|
| 96  | LedgerChange  | lines changed, many in one message   | takes them, unless overtaken        |
| 97  | LedgerDigest  | after changes, then each `refresh`   | agrees, or reads the ledger again   |
| 98  | LedgerAgreed  | the digest is that of its copy       | waits for the next `refresh`        |
| 99  | LedgerRequest | the digest differs; for each page    | sends the page after that key       |
| 100 | LedgerPage    | asked                                | takes it, asks for the next         |
| 101 | TopicRequest  | `ask_topic`; forwarded by a delegate | answers as the home, or asks it     |
| 102 | TopicAnswer   | asked                                | passes it on, or tells who asked    |

Soft state. A ledger that stays as it is costs a digest of 8 bytes per `refresh`, whatever it
holds. Changes carry a growing stamp, so that copies and stragglers change nothing. A line goes by
a *withdrawal*, at once; or because its owner does not tell it any more (it moved to another
reader, or the owner died): then it is *doubted*, and holds for one to two times `linger` unless
somebody tells it again. What members and gateways of the own zone told goes with them, since the
view says so. A roster whose home is silent for `expire` is forgotten; any other ledger is then
asked for.

Handing over. Who is responsible changes with the rings. An owner tells the new reader at once, and
the old one nothing: there the lines are doubted. So a predecessor stands for a topic until its
successor is known everywhere, and a new home that knows little makes nobody drop a gateway:
gateways add up what all homes told. A home that dies is replaced by its ring successor, which has
its lines (REPLICAS) and uses them while delegates, which see the ring change, tell it theirs
(INTERESTS). A home tells a gateway its own line only once delegates had time to tell what they
know: whoever has it knows all others (`knows_remote`). A zone that is split has a gateway in each
part; both are told to the others.

Patterns cannot be hashed. Members tell theirs by the attribute `patterns`, a line for each; a
delegate tells a bounded summary of them all, perhaps wider, by the same attribute in the
management zone. A home tells a delegate of each zone which topics with publishers its patterns
cover (EXISTING), the delegate tells who would be their gateways (PROSPECTS), and those stand for
them while a member's pattern covers them.

A single zone costs nothing but declarations: gateways register only while the directory shows
another zone, with the most senior delegate that answers, or with themselves. Who is appointed and
knows of no other zone asks for the directory at once.

What is trusted. Only members of the own zone may declare, register and tell prospects; only
members of the management zone may tell interests, replicas and existing topics, and interests only
about the zone that they show as their own (its right to do so is checked by `zones`). A gateway
stands for others, so its own certificate does not matter; a member's does (`may`), where it is
known: what it may not do is counted and not believed. A roster is believed from anybody, since a
member cannot know who is a home: it can only add gateways, and never takes away what another home
told.

Invariants
- Every ledger kept for others is compared in time; every one kept here is read again or expires.
- A gateway has registered exactly the topics that it stands for, or there is no other zone.
- Only who is in the management zone is a home, and it can name each of its topics.
- At most `max_open` questions are open; each has a timer; each ends in exactly one event.
- (scenarios) In the end all gateways of a topic know each other exactly, and nobody else is one.

Departs from §3.2, where the zone's representative designates the gateway: here the ring does, so
that everybody in the zone knows the gateway, and its successor, without being told.
"""

from protocols.gateways.config import GatewaysSettings
from protocols.gateways.events import (
    GatewayAppointed,
    GatewayDismissed,
    GatewayMoved,
    GatewaysChanged,
    TopicKnown,
    TopicUnknown,
)
from protocols.gateways.interface import GatewayBook, RemoteGateway, gateway_key, topic_id
from protocols.gateways.machine import Gateways

__all__ = [
    "GatewayAppointed",
    "GatewayBook",
    "GatewayDismissed",
    "GatewayMoved",
    "Gateways",
    "GatewaysChanged",
    "GatewaysSettings",
    "RemoteGateway",
    "TopicKnown",
    "TopicUnknown",
    "gateway_key",
    "topic_id",
]
