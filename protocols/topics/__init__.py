"""Topics: publishers and subscribers, four reliability modes, within a zone and across zones.

SpiderCast §3. A publisher's messages are a *stream*: numbered from 1, packed into *chunks* of
consecutive messages that are encoded once, kept in the sender's history, and travel as they are
kept; a long message that is alone in its chunk is the payload itself, packed by nobody (`BARE`).
Receivers compare ranges of numbers, so nothing is done for a single message. One instance
serves a node, in the node's own scope.

| tag | message  | sent when                              | the receiver                           |
|-----|----------|----------------------------------------|----------------------------------------|
| 112 | Offer    | an interested node is discovered       | answers Accept or Reject               |
| 113 | Accept   | a stream is wanted; Begin is awaited   | answers Begin, and sends from there    |
| 114 | Reject   | nobody here wants it, or its publisher | leaves it alone until its interest     |
|     |          |                                        | changes or it knocks                   |
| 115 | Begin    | an Accept came; or a hole was found    | begins there; what it lacks is a Gap   |
| 116 | Data     | a chunk is full, or a tick ends; empty | puts it in order, hands it over        |
|     |          | ones tell how far the stream is        |                                        |
| 117 | TreeData | the same, to many                      | and hands it on within its range       |
| 118 | Ack      | every `ack_every`, or a part of a      | trims its history, fills the gaps      |
|     |          | window; when asked; at a gap           |                                        |
| 119 | Nack     | a gap stays; in nack mode              | sends what it has of it                |
| 120 | Failed   | a receiver was silent or too slow      | knocks, if it is still interested      |
| 121 | Leave    | a subscriber closed, or has it all     | waits for it no longer                 |
| 122 | Knock    | a node lacks offers of a topic         | offers its streams of it               |
| 123 | Recall   | a subscription wants more of the time  | answers with a part of it, and keeps   |
|     |          | before than the others of its node     | nothing about it                       |
| 124 | Recalled | a Recall came                          | puts it in front of what arrives, and  |
|     |          |                                        | asks for the next part                 |
| 125 | Repair   | a chunk is sent again, to who lacks it | as Data, which it overtakes            |
| 126 | Moving   | its sender, or the publisher, changes  | keeps its place, or waits for it, and  |
|     |          | its zone or address; and on arrival    | hands that on as a gateway             |

Modes (§3.1.1), chosen by each publisher. *unordered*: handed over on arrival. *ordered*: what is
overtaken for longer than `order_wait` is skipped. *ack*: a handshake with each receiver; what is
published from its discovery on is kept until it acknowledged it, however often it must be sent
again; windows in bytes bound what is under way, and a publisher waits, drops the oldest or lets
go of the slowest (`TopicConfig.slow`) when its history is full. *nack*: the sender keeps nothing
about receivers but since when they are interested; they ask for gaps, first whoever handed chunks
on to them, then the source, then anybody who shares the topic. Who lacks it, too, passes it on
when it comes, and deeper nodes wait longer: so one loss is one request at the source. What fell out
of the history is a `Gap`. Order is that of each publisher.

Routes (§3.1). Few subscribers get chunks over direct links; from `tree_from` on, until they are
`tree_until`, by a pruned broadcast over the overlay's links (`tree.py`). Numbers make a switch
harmless: what comes twice is dropped, what is missing is asked for.

Zones (§3.2, the preferred combination). `protocols/gateways` tells who stands for a zone in a
topic. A publisher offers its streams to the gateway of its own zone, which stands for all others;
it relays to the gateways of interested zones, and those to their members. A relay acknowledges only
what all behind it have. So when a gateway dies nothing but positions is lost, and its successor
learns them: from members by their Accepts, while the relay or publisher before it still has all
from the position on that its predecessor acknowledged. While two stand for a zone, one whose
receivers all went to the other leaves its source, and one that is asked for what it trimmed begins
again with all that its source still keeps for the other. One that says nothing for `lost_grace`
while another of its zone takes part, who was promised all that it lacks, is not waited for: what
that one acknowledges counts, upstream and for who flushes; history is kept for both. When it leaves
because those behind it closed, nobody waits for what the silent one lacks. Departs from §3.2: no
state is replicated between gateways, since receivers and senders hold all of it anyway.

Moves. A node that changes its zone or address keeps its streams, as a publisher and as a receiver,
with their keys and numbers. It says so (`Moving`), everybody keeps the places of before for
`move_within`, and a receiver leaves its old source only when a new one promises all that it lacks:
see `moving.py`.

Replays. A late joiner asks in its Accept for what is kept (`TopicConfig.keep`, in nack mode all of
the history). The subscriptions of a node share one arrival, which asks for what all of them want.
One that wants more than that, or comes when the stream arrives already, recalls the rest for
itself, from whoever sends the stream to its node, up to the message before which it joined
(`Recall`, `recalling.py`). Meanwhile a `CatchUp` stands in its place: what arrives for all waits
there, within the subscription's capacity. So the replay comes once, in order and before the rest,
and the others neither get it nor wait for it. Each request says what is here, so that loss costs a
repetition and a new gateway can answer the next one. What leaves the history meanwhile is a Gap of
that subscription alone. A gateway asks for all that is kept, and its Begin tells what of it is
older than the interest of its zone (`live`): who is new there, and wants no replay, begins after
that. An ordered stream has no handshake: all who want a replay of it recall it, and a gateway first
fetches what the publisher keeps (`Backfill`). Unordered ones have no replay.

Ends. A closed publisher says so with its last number, and lingers. A silent receiver is failed and
told so; it knocks, and goes on where it was if that is still there, else after a Gap; if it says
nothing it is offered the stream once more after `handshake_within`. A stream that falls silent
ends with PublisherFailed at its subscribers. What is here of it then is still handed over, as they
read it; holes in it are Gaps; and what they only knew of is one, too, when its source did not come
back within `remember`.

Trust. A member of the zone, and a gateway, are believed in what they hand on for others; streams of
anybody else are counted as `stray`. Refused, with these reasons: `may-not-publish`,
`may-not-subscribe`, `bad-topic`, `ack-unsent`, `accept-unsent`, `range-nonsense`, `data-nonsense`,
`malformed-chunk`, `range-elsewhere`, `range-too-wide`, `hop-limit`, `too-many-streams`.

Invariants (`check_invariants`; the scenarios in nodes/scenarios/topics.py look at whole histories)
- In ack mode nothing that a receiver lacks leaves the history, unless it is told.
- No receiver has more than it was sent, and none was sent more than there is.
- A history is never over its bounds.
- A gap has a timer; an unacknowledged chunk has a timer.
- (scenarios) ack: each subscriber gets, from where it began, everything once and in order, or it
  is told that it failed. nack: the same, or an explicit Gap.
"""

from protocols.topics.config import TopicConfig, TopicsSettings
from protocols.topics.events import (
    Gap,
    PublisherAppeared,
    PublisherFailed,
    PublisherGone,
    StreamEnded,
    SubscriberFailed,
    SubscriberJoined,
    SubscriberLeft,
    SubscriberSlow,
    SubscriptionFailed,
)
from protocols.topics.machine import Topics
from protocols.topics.modes import Mode, Reliability
from protocols.topics.publishing import Publisher
from protocols.topics.subscription import Batch, Replay, Subscription

__all__ = [
    "Batch",
    "Gap",
    "Mode",
    "Publisher",
    "PublisherAppeared",
    "PublisherFailed",
    "PublisherGone",
    "Reliability",
    "Replay",
    "StreamEnded",
    "SubscriberFailed",
    "SubscriberJoined",
    "SubscriberLeft",
    "SubscriberSlow",
    "Subscription",
    "SubscriptionFailed",
    "TopicConfig",
    "Topics",
    "TopicsSettings",
]
