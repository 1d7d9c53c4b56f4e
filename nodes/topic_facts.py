"""Topics of one node as plain values, for `--json` and the control socket."""

from __future__ import annotations

from typing import Any

from protocols.topics.machine import Topics
from protocols.topics.modes import Mode, name_of
from protocols.topics.publishing import Publisher
from protocols.topics.receiving import Incoming
from protocols.topics.relation import ALL_OTHER_ZONES, Relation
from protocols.topics.subscription import Subscription


def topic_facts(topics: Topics) -> dict[str, Any]:
    """What the node publishes, what arrives, who reads it, and which gateways it knows.

    Counts only grow: two looks give rates.
    """
    known = {one.topic for one in topics.publishers}
    known |= {one.topic for one in topics.streams}
    return {
        "published": [published_facts(one) for one in topics.publishers],
        "arriving": [arriving_facts(one) for one in topics.streams],
        "subscriptions": [subscription_facts(one) for one in topics.subscriptions],
        "gateways": {topic: gateway_facts(topics, topic) for topic in sorted(known)},
    }


def published_facts(one: Publisher) -> dict[str, Any]:
    """One publisher of this node."""
    history = one.history
    told = [relation_facts(relation, history.newest) for relation in one.relations.values()]
    if one.mode is not Mode.ACK:  # it knows of interest, not of progress
        told += [_facts(name, "", "interested", None) for name in one.receivers]
    return {
        "topic": one.topic,
        "publisher": one.key[0],
        "stream": one.key[1],
        "mode": name_of(one.mode),
        "messages": history.newest,
        "bytes": history.end,
        "kept_messages": history.messages,
        "kept_bytes": history.bytes,
        "open": not one.closed,
        "route": "tree" if one.by_tree else "direct",
        "subscribers": told,
    }


def relation_facts(relation: Relation, newest: int) -> dict[str, Any]:
    """One receiver: `zone` is whom it stands for as a gateway, "*" for all other zones."""
    zone = "*" if relation.stands_for == ALL_OTHER_ZONES else relation.stands_for
    state = "operational" if relation.operational else "offered"
    return _facts(relation.peer, zone, state, newest - relation.acked)


def _facts(name: str, zone: str, state: str, behind: int | None) -> dict[str, Any]:
    return {"name": name, "zone": zone, "state": state, "behind": behind}


def arriving_facts(one: Incoming) -> dict[str, Any]:
    """One stream that this node gets, for itself or, as a gateway, for others."""
    relay = one.relay
    relations = relay.relations.values() if relay is not None else ()
    return {
        "topic": one.topic,
        "publisher": one.key[0],
        "stream": one.key[1],
        "mode": name_of(one.mode),
        "source": one.source,
        "messages": max(one.order.expected - 1, 0),
        "bytes": one.bytes,
        "behind": max(one.order.newest + 1 - one.order.expected, 0) if one.begun else 0,
        "subscriptions": len(one.subscriptions),
        "relayed": relay is not None,
        "subscribers": [relation_facts(relation, one.order.newest) for relation in relations],
    }


def subscription_facts(one: Subscription) -> dict[str, Any]:
    """One subscription of this node's application."""
    return {
        "pattern": one.pattern,
        "unread_bytes": one.bytes,
        "unread_messages": sum(len(batch.items) for batch in one.queue),
        "full": one.held,
    }


def gateway_facts(topics: Topics, topic: str) -> dict[str, Any]:
    """Who stands for this zone in a topic, and at that gateway for the others."""
    book = topics.gateways
    remote = book.remote_gateways(topic) if book.is_gateway(topic) else {}
    return {
        "gateway": book.gateway_of(topic),
        "zones": {far.zone: name for name, far in remote.items()},
    }
