"""Every kind of row, in one place. Append-only: jobs read the traces of years ago.

A protocol leaves a row so: `if self.effects.tracing: self.effects.trace(Trace(DELIVERED, …))`. A
new kind is a constant here, with its level and what it means; columns need no change for it.
"""

from __future__ import annotations

from overlay.tracing import Kind, Level

OFF, DELIVERY, MESSAGES, ALL = Level

# -- lives, by the driver ------------------------------------------------------------------------

STARTED = Kind("started", DELIVERY, "a life of a node began", {"detail": "version of the software"})
STOPPED = Kind("stopped", DELIVERY, "a life ended in good order: peers were told")
CRASHED = Kind("crashed", DELIVERY, "the simulator killed the node: no peer was told")
PAUSED = Kind("paused", DELIVERY, "the simulator froze the node")
RESUMED = Kind("resumed", DELIVERY, "it goes on")
FAULT_BEGAN = Kind(
    "fault-began",
    DELIVERY,
    "the simulator bends the network from now on",
    {"node": "empty", "detail": "the rule"},
)
FAULT_ENDED = Kind(
    "fault-ended", DELIVERY, "and no longer", {"node": "empty", "detail": "the rule"}
)

# -- the recorder itself -------------------------------------------------------------------------

LEVEL_SET = Kind(
    "level-set",
    DELIVERY,
    "tracing began, or its level changed: rows of higher levels end here",
    {"detail": "the level", "value": "one of so many flows and messages is kept"},
)
ROWS_DROPPED = Kind(
    "rows-dropped",
    DELIVERY,
    "the recorder's buffer was full: so many rows are missing before this one",
    {"count": "rows"},
)

# -- links and messages, by the driver -----------------------------------------------------------

LINK_UP = Kind("link-up", DELIVERY, "a link with `peer` completed its handshake")
LINK_LOST = Kind("link-lost", DELIVERY, "a link with `peer` broke", {"detail": "reason"})
SENT = Kind(
    "sent",
    MESSAGES,
    "messages of one type left for `peer` in one flush, over a link",
    {"count": "messages", "bytes": "of all of them, encoded, with their share of the frame"},
)
RECEIVED = Kind(
    "received",
    MESSAGES,
    "messages of one type came from `peer` in one frame",
    {"count": "messages", "bytes": "of all of them, encoded, with their share of the frame"},
)
CAST = Kind("cast", MESSAGES, "a datagram left", {"peer": "address or group", "bytes": "of it"})
HEARD = Kind("heard", MESSAGES, "a datagram arrived and was believed", {"bytes": "of it"})
REFUSED = Kind(
    "refused", DELIVERY, "what `peer` sent was refused", {"detail": "reason", "count": "messages"}
)
DROPPED = Kind(
    "dropped",
    MESSAGES,
    "this node dropped messages for `peer` in the last second: a queue was full",
    {"detail": "which lane: `first` or `bulk`", "count": "messages"},
)

# -- members of a zone (scope: the zone whose members they are) ----------------------------------

ZONE_ENTERED = Kind("zone-entered", DELIVERY, "this node is a member now; `peer` let it in")
MEMBER_JOINED = Kind(
    "member-joined", DELIVERY, "`peer` is in this node's view now", {"value": "its incarnation"}
)
MEMBER_SUSPECTED = Kind(
    "member-suspected", DELIVERY, "`peer` does not answer", {"origin": "who accuses it"}
)
MEMBER_REFUTED = Kind("member-refuted", DELIVERY, "the suspect `peer` lives")
MEMBER_FAILED = Kind(
    "member-failed",
    DELIVERY,
    "`peer` is removed from the view",
    {"detail": "`restarted`: only its earlier life is over"},
)
MEMBER_LEFT = Kind("member-left", DELIVERY, "`peer` said goodbye")
VIEW_CHANGED = Kind(
    "view-changed",
    DELIVERY,
    "the view of this node after a tick that changed it",
    {"count": "members, this node included", "key": "digest of their names: equal views are equal"},
)

DELEGATE_APPOINTED = Kind("delegate-appointed", DELIVERY, "`peer` stands for this node's zone now")
DELEGATE_DISMISSED = Kind("delegate-dismissed", DELIVERY, "and no longer")
GATEWAY_APPOINTED = Kind(
    "gateway-appointed", DELIVERY, "this node hands the streams of `topic` on between zones"
)
GATEWAY_DISMISSED = Kind("gateway-dismissed", DELIVERY, "and no longer")

# -- topics --------------------------------------------------------------------------------------

PUBLISHED = Kind(
    "published",
    DELIVERY,
    "a publisher of this node (`origin` = `node`) sent messages first to first + count - 1",
    {"bytes": "payloads, packed", "detail": "mode: ack, nack, …"},
    flow=True,
)
DELIVERED = Kind(
    "delivered",
    DELIVERY,
    "the subscriptions of this node got these messages of `origin`, in this order",
    {
        "peer": "who handed them over: `origin`, a parent in its tree, or a gateway",
        "duration": "since their timestamp, in overlay time: one way, ± both clock errors",
        "hops": "links from `origin` to here, where known",
        "bytes": "payloads, packed",
        "detail": "mode",
    },
    flow=True,
)
REPLAYED = Kind(
    "replayed",
    DELIVERY,
    "one subscription of this node got messages of the time before it began",
    {"peer": "who sent them", "duration": "since their timestamp", "detail": "mode"},
    flow=True,
)
STREAM_BEGAN = Kind(
    "stream-began",
    DELIVERY,
    "this node gets the stream from message `first` on; what came before it never wanted",
    {"peer": "who sends it"},
    flow=True,
)
STREAM_ENDED = Kind(
    "stream-ended",
    DELIVERY,
    "no more of this stream is delivered here",
    {
        "detail": "`closed`: by its publisher, all is here; `unsubscribed`; or why it failed",
        "first": "where it is unsubscribed, the next message: those from it on are not lost",
    },
    flow=True,
)
GAP = Kind(
    "gap",
    DELIVERY,
    "messages first to first + count - 1 never reach this subscriber, and it was told so",
    {"detail": "reason"},
    flow=True,
)
SUBSCRIBER_JOINED = Kind(
    "subscriber-joined", DELIVERY, "`peer` takes part from message `first` on", flow=True
)
SUBSCRIBER_SLOW = Kind(
    "subscriber-slow", DELIVERY, "this publisher waits for `peer`", {"count": "messages"}, flow=True
)
SUBSCRIBER_FAILED = Kind(
    "subscriber-failed", DELIVERY, "this publisher gave `peer` up", {"detail": "why"}, flow=True
)
SUBSCRIBER_LEFT = Kind("subscriber-left", DELIVERY, "`peer` wants no more of it", flow=True)
RELAYED = Kind(
    "relayed",
    MESSAGES,
    "this gateway took messages from `peer` to hand them on in its zone",
    {"duration": "since their timestamp"},
    flow=True,
)
FORWARDED = Kind(
    "forwarded",
    MESSAGES,
    "this node handed messages on down their broadcast tree",
    {
        "peer": "the child",
        "hops": "of the child",
        "message": "what it travels in",
        "duration": "since their timestamp",
    },
    flow=True,
)
REPAIRED = Kind(
    "repaired", MESSAGES, "messages were sent again to `peer`, who lacked them", flow=True
)

# -- routes, broadcasts and aggregates of the ring (stream: number given by `origin`) ------------

ROUTE_BEGAN = Kind("route-began", MESSAGES, "this node routes to `key`", flow=True)
ROUTE_HOP = Kind(
    "route-hop", MESSAGES, "handed on to `peer`", {"hops": "that it took with this"}, flow=True
)
ROUTE_ARRIVED = Kind(
    "route-arrived", MESSAGES, "this node is responsible for `key`", {"peer": "last hop"}, flow=True
)
ROUTED = Kind(
    "routed",
    MESSAGES,
    "the origin knows that it arrived at `peer`",
    {"duration": "there and back"},
    flow=True,
)
ROUTE_FAILED = Kind("route-failed", MESSAGES, "or that it did not", {"detail": "why"}, flow=True)
BROADCAST_BEGAN = Kind(
    "broadcast-began", MESSAGES, "a broadcast or an aggregate begins here", flow=True
)
BROADCAST_ARRIVED = Kind(
    "broadcast-arrived",
    MESSAGES,
    "for the first time, from the parent `peer`",
    {"hops": "from the origin"},
    flow=True,
)
BROADCAST_HOP = Kind(
    "broadcast-hop",
    MESSAGES,
    "handed on to the child `peer`",
    {"hops": "from the origin to it"},
    flow=True,
)
BROADCAST_DONE = Kind(
    "broadcast-done",
    MESSAGES,
    "the origin knows whom it reached",
    {"count": "members reached", "value": "members missing", "hops": "depth of the tree"},
    flow=True,
)

# -- the time service ----------------------------------------------------------------------------

CLOCK_SET = Kind(
    "clock-set",
    DELIVERY,
    "overlay time is known now, or comes from another root",
    {"peer": "the root", "value": "s that the node's clock lacks", "duration": "error at most"},
)
CLOCK_READ = Kind(
    "clock-read",
    MESSAGES,
    "one exchange with a source of time",
    {"peer": "source", "value": "s of offset to it", "duration": "round trip"},
)

# -- the distributed table -----------------------------------------------------------------------

DHT_BEGAN = Kind("dht-began", MESSAGES, "an operation began here", {"detail": "put, get, …"}, True)
DHT_DONE = Kind(
    "dht-done",
    DELIVERY,
    "an operation ended here",
    {
        "detail": "its name and outcome: `get found`, `put stored`, `get timeout`",
        "duration": "of all of it",
        "hops": "to who answered",
        "peer": "who answered",
        "stream": "number of the operation, given by `origin` = `node`",
    },
    flow=True,
)
DHT_STORED = Kind(
    "dht-stored",
    MESSAGES,
    "this node keeps a version of `key` now",
    {
        "detail": "`owner`, `replica` or `lateral`: its time after the owner's is the lag",
        "stream": "ballot of the owner",
        "value": "number of the version under that ballot",
    },
)
DHT_LOAD = Kind(
    "dht-load",
    DELIVERY,
    "what this node holds, from time to time",
    {"count": "keys", "bytes": "of values", "detail": "`owner`, `replica` or `lateral`"},
)

# -- discovery of brokers (origin: who looks; stream: number of its request) ---------------------

DISCOVERY_BEGAN = Kind("discovery-began", DELIVERY, "this node looks for a broker", flow=True)
DISCOVERY_ASKED = Kind(
    "discovery-asked",
    DELIVERY,
    "it sent its request",
    {"detail": "to whom: bdn, multicast, known", "peer": "name or address", "value": "attempt"},
    flow=True,
)
DISCOVERY_RESPONSE = Kind(
    "discovery-response",
    DELIVERY,
    "the broker `peer` answered",
    {"duration": "since it began"},
    flow=True,
)
DISCOVERY_PING = Kind(
    "discovery-ping",
    ALL,
    "a ping of the broker `peer` came back",
    {"duration": "round trip"},
    flow=True,
)
DISCOVERY_PHASE = Kind(
    "discovery-phase",
    DELIVERY,
    "how long one part took",
    {"detail": "waiting, choosing or pinging", "duration": "of it"},
    flow=True,
)
DISCOVERY_CHOSEN = Kind(
    "discovery-chosen",
    DELIVERY,
    "it ended well, with the broker `peer`",
    {"duration": "of all of it", "count": "responses", "value": "s, p50 round trip to it"},
    flow=True,
)
DISCOVERY_FAILED = Kind(
    "discovery-failed", DELIVERY, "it ended without a broker", {"detail": "why"}, flow=True
)
DISCOVERY_HANDLED = Kind(
    "discovery-handled",
    MESSAGES,
    "a broker or BDN got a request of `origin`",
    {"detail": "answered, silent, repeated, injected", "peer": "who sent it", "hops": "it took"},
    flow=True,
)
BROKER_MOVED = Kind(
    "broker-moved", DELIVERY, "`peer` is the broker to use now", {"detail": "why", "origin": "old"}
)

# -- content-based routing (origin: the publisher; stream: epoch; key: the advertisement) --------

CONTENT_PUBLISHED = Kind(
    "content-published",
    DELIVERY,
    "this node published under an advertisement in one tick",
    {"first": "sequence number of the first", "count": "publications"},
    flow=True,
)
CONTENT_DELIVERED = Kind(
    "content-delivered",
    DELIVERY,
    "subscriptions of this node got publications of one advertisement in one tick",
    {"first": "of the first", "count": "deliveries", "hops": "of the farthest"},
    flow=True,
)
CONTENT_HANDED_ON = Kind(
    "content-handed-on",
    MESSAGES,
    "a node sent publications of one advertisement on in one tick",
    {"first": "of the first", "count": "copies", "hops": "that the farthest took up to here"},
    flow=True,
)
CONTENT_ADVERTISED = Kind(
    "content-advertised",
    MESSAGES,
    "a broker knows an advertisement, by another way, or no more",
    {"peer": "the last hop", "hops": "brokers on the way", "detail": "added, changed or removed"},
)
CONTENT_LINKED = Kind(
    "content-linked",
    DELIVERY,
    "`peer` is a neighbour, a client or the broker of this node, or no more",
    {"detail": "neighbour, client or broker; up or down"},
)

# -- discovery of resources (origin: the broker of who asks; stream: number of its request) -----

RESOURCE_REGISTERED = Kind(
    "resource-registered",
    DELIVERY,
    "a resource of this node can be found from now on, or no more",
    {"key": "OWNER/NAME", "detail": "registered, unregistered or expired, and the model"},
)
RESOURCE_REQUESTED = Kind(
    "resource-requested",
    DELIVERY,
    "this broker asks for dynamic resources",
    {"key": "what they must match", "detail": "forwarding: normal, similarity or direct"},
    flow=True,
)
RESOURCE_HANDLED = Kind(
    "resource-handled",
    MESSAGES,
    "a broker got a request from `peer`",
    {
        "detail": "routed, covered, relayed, repeated or refused",
        "hops": "it took",
        "value": "neighbours whose answers it waits for",
    },
    flow=True,
)
RESOURCE_ANSWERED = Kind(
    "resource-answered",
    MESSAGES,
    "a broker sent results to `peer`, its own or those of others",
    {"count": "results", "hops": "of the request up to here"},
    flow=True,
)
RESOURCE_DONE = Kind(
    "resource-done",
    DELIVERY,
    "the request ended",
    {
        "value": "resources found",
        "duration": "of all of it",
        "hops": "of the farthest result",
        "detail": "`all answered` or `limit`: complete; `timeout` or `branch lost`: not",
    },
    flow=True,
)

# -- colonies (origin: the client; stream: its request) -----------------------------------------

COLONY_LEADER = Kind(
    "colony-leader",
    DELIVERY,
    "this unit follows `peer` from now on, or no more",
    {"detail": "found, or why it was lost", "hops": "to the root"},
)
COLONY_ASKED = Kind(
    "colony-asked",
    DELIVERY,
    "this node asks for services",
    {"count": "wants", "detail": "search mode; empty: as each broker is set"},
    flow=True,
)
COLONY_HANDLED = Kind(
    "colony-handled",
    MESSAGES,
    "a broker got a request from `peer`",
    {"count": "wants", "hops": "it took"},
    flow=True,
)
COLONY_FOUND = Kind(
    "colony-found",
    DELIVERY,
    "`peer` serves a want of the request",
    {"first": "number of the want", "hops": "the request took", "duration": "since it was asked"},
    flow=True,
)
COLONY_DONE = Kind(
    "colony-done",
    DELIVERY,
    "the request ended",
    {
        "count": "wants that are served",
        "value": "wants that were asked",
        "duration": "of all of it",
        "detail": "complete or timed out",
    },
    flow=True,
)

# -- clients that move (stream: the number of the move) -----------------------------------------

MOVED_OUT = Kind(
    "moved-out", DELIVERY, "this client left its broker `peer`", {"detail": "the algorithm"}
)
MOVED_IN = Kind(
    "moved-in", DELIVERY, "this client turned to its broker `peer`", {"detail": "the algorithm"}
)
KEPT_FOR = Kind(
    "kept-for",
    DELIVERY,
    "what this broker keeps for the mobile subscriber `peer`",
    {
        "detail": "away, silent, back, handed over (`origin`: to whom) or expired",
        "count": "publications that were lost with it, where it expired",
    },
)
KEPT_GAP = Kind(
    "kept-gap",
    DELIVERY,
    "publications for this mobile subscriber are lost",
    {"count": "at least so many; 0: nobody knows", "detail": "why"},
)
TREE_READY = Kind(
    "tree-ready",
    DELIVERY,
    "the trees of this client stand at `peer`: the end of t4",
    {
        "duration": "since it moved in",
        "count": "publications that were held until then",
        "detail": "complete, or incomplete: somebody did not answer",
    },
)

KINDS: dict[str, Kind] = {
    one.name: one for one in list(globals().values()) if isinstance(one, Kind)
}
"""Every kind by its name, in the order above."""
