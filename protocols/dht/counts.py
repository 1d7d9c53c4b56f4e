"""What happened to one node's part of the table, for people and tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DhtCounts:
    """All since the start."""

    submitted: int = 0
    done: int = 0
    refused: int = 0
    unknown: int = 0
    retried: int = 0  # operations that were sent again, or to somebody else
    served: int = 0  # operations of this and other nodes that this one did as a leader
    repeated: int = 0  # copies of requests that were done already
    batches: int = 0  # of writes, sent to followers
    committed: int = 0
    elected: int = 0  # times that this node began to lead a shard
    deposed: int = 0
    recovered: int = 0  # records that a new leader proposed again
    changed: int = 0  # groups that this node replaced
    forced: int = 0  # of them, without their majority, since a person accepted the loss
    aborted: int = 0  # changes given up: a new member was gone
    copied: int = 0  # records sent to members that lacked them
    copied_bytes: int = 0
    route_requests: int = 0
    route_hops: int = 0  # of all routes that were found
    routes: int = 0
    late: int = 0  # replies to what nobody waits for
    other_table: int = 0  # messages of another table
    misrouted: int = 0  # messages that came hop by hop and were refused
    strangers: int = 0  # messages about a shard from who is not in its group
    forbidden: int = 0  # requests that a certificate does not allow
    expired: int = 0
    proxied: int = 0  # operations done for nodes that keep no keys
    united: int = 0  # records moved into an older table
    conflicts: int = 0  # of them, those whose key was there
    full: int = 0  # writes refused for lack of room
    busy: int = 0
