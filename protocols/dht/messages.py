"""What travels between servers of the table, and between them and those who ask."""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

import msgspec

from overlay.ids import WireName
from overlay.protocol import Message
from protocols.dht.groups import Endpoints, Group, Life, Member, Members, Number, Zone
from protocols.dht.interface import Kind

MOST = 4096  # items in one message
MOST_KEY = 16_384
MOST_VALUE = 100_000
LEAVES = 32  # of a shard's digest
BRANCHES = 16  # of the digest of all shards of one leader

Shard: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 16) - 1)]
Key: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=MOST_KEY)]
Value: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=MOST_VALUE)]
Millis: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=256)]
Shards: TypeAlias = Annotated[tuple[Shard, ...], msgspec.Meta(max_length=MOST)]
Numbers: TypeAlias = Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST)]
Leaf: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=LEAVES)]

MOVED, BUSY = 3, 4  # statuses of a Result besides those of `Status`: nothing was done


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A piece of a message."""


class Op(Part, frozen=True):
    """One operation for whoever holds that ballot."""

    id: Number
    shard: Shard
    ballot: Number
    kind: Kind
    key: Key
    value: Value = b""
    expected: Value = b""
    ttl: Millis = 0


class Result(Part, frozen=True):
    """How one operation ended, or why it did not begin."""

    id: Number
    status: Annotated[int, msgspec.Meta(ge=0, le=BUSY)]
    applied: bool = False
    value: Value | None = None
    reason: Reason = ""


class Row(Part, frozen=True):
    """One record of a shard: a value, or None where it was removed."""

    key: Key
    ballot: Number
    sequence: Number
    value: Value | None
    ttl: Millis = 0  # that is left of it; 0: it does not expire


class Entry(Part, frozen=True):
    """One write of a leader."""

    shard: Shard
    ballot: Number
    sequence: Number
    key: Key
    value: Value | None
    ttl: Millis = 0


class Candidacy(Part, frozen=True):
    """One shard that somebody wants to lead."""

    shard: Shard
    ballot: Number
    members: Annotated[int, msgspec.Meta(ge=0, lt=MOST)]  # index into the message's groups


class Promised(Part, frozen=True):
    """What a member says to a candidacy: with `promised` over `ballot`, no."""

    shard: Shard
    ballot: Number
    promised: Number
    digest: Number
    next_ballot: Number = 0
    next_group: Group | None = None  # accepted here, perhaps decided


class Choice(Part, frozen=True):
    """The next group of one shard."""

    shard: Shard
    ballot: Number
    group: Group


Ops: TypeAlias = Annotated[tuple[Op, ...], msgspec.Meta(max_length=MOST)]
Results: TypeAlias = Annotated[tuple[Result, ...], msgspec.Meta(max_length=MOST)]
Rows: TypeAlias = Annotated[tuple[Row, ...], msgspec.Meta(max_length=MOST)]
Entries: TypeAlias = Annotated[tuple[Entry, ...], msgspec.Meta(max_length=MOST)]
Digests: TypeAlias = Annotated[tuple[tuple[Leaf, Number], ...], msgspec.Meta(max_length=LEAVES)]
Pairs: TypeAlias = Annotated[tuple[tuple[Shard, Number], ...], msgspec.Meta(max_length=MOST)]
Triples: TypeAlias = Annotated[
    tuple[tuple[Shard, Number, Number], ...], msgspec.Meta(max_length=MOST)
]


class Request(Message, frozen=True, tag=176):
    """Do these; operations under `floor` are over, a copy of them must not be done again."""

    table: Number
    session: Life  # tells two processes of one node apart
    floor: Number
    ops: Ops


class Reply(Message, frozen=True, tag=177):
    """How they ended."""

    results: Results


class Confirm(Message, frozen=True, tag=178):
    """Do you promise these ballots still? (id of the question, shard, ballot)."""

    table: Number
    asked: Annotated[tuple[tuple[Number, Shard, Number], ...], msgspec.Meta(max_length=MOST)]


class Confirmed(Message, frozen=True, tag=179):
    """To these questions yes, to those no."""

    yes: Numbers
    no: Numbers = ()


class Prepare(Message, frozen=True, tag=180):
    """I want to lead these shards."""

    table: Number
    groups: Annotated[tuple[Members, ...], msgspec.Meta(max_length=MOST)]
    items: Annotated[tuple[Candidacy, ...], msgspec.Meta(max_length=MOST)]


class Promise(Message, frozen=True, tag=181):
    """Yes or no to each."""

    table: Number
    items: Annotated[tuple[Promised, ...], msgspec.Meta(max_length=MOST)]


class Pull(Message, frozen=True, tag=182):
    """Send me what differs from these leaves; those that are not named are empty."""

    table: Number
    shard: Shard
    ballot: Number
    leaves: Digests


class Pulled(Message, frozen=True, tag=183):
    """Records of the leaves that differ; more follow unless this is the last of `parts`."""

    table: Number
    shard: Shard
    ballot: Number
    differ: Annotated[tuple[Leaf, ...], msgspec.Meta(max_length=LEAVES)]
    rows: Rows
    part: Number
    parts: Number


class Accept(Message, frozen=True, tag=184):
    """Keep these."""

    table: Number
    batch: Number
    entries: Entries


class Accepted(Message, frozen=True, tag=185):
    """I keep that batch, but not those (shard, promised) that I promised to somebody else."""

    table: Number
    batch: Number
    refused: Pairs = ()


class Offer(Message, frozen=True, tag=186):
    """My records of a shard have these leaves: which of them do you want?"""

    table: Number
    shard: Shard
    ballot: Number
    leaves: Digests


class Want(Message, frozen=True, tag=187):
    """These; none: we have the same, if `digest` is yours."""

    table: Number
    shard: Shard
    ballot: Number
    leaves: Annotated[tuple[Leaf, ...], msgspec.Meta(max_length=LEAVES)]
    digest: Number


class Copy(Message, frozen=True, tag=188):
    """All records of these leaves, as they were when `upto` was the leader's last sequence."""

    bulk = True

    table: Number
    shard: Shard
    ballot: Number
    upto: Number
    leaves: Annotated[tuple[Leaf, ...], msgspec.Meta(max_length=LEAVES)]
    rows: Rows
    part: Number
    parts: Number


class Decide(Message, frozen=True, tag=189):
    """Let these groups be next."""

    table: Number
    items: Annotated[tuple[Choice, ...], msgspec.Meta(max_length=MOST)]


class Decided(Message, frozen=True, tag=190):
    """For these (shard, ballot) I keep them; (shard, promised): for those I promised more."""

    table: Number
    kept: Pairs
    refused: Pairs = ()


class Activate(Message, frozen=True, tag=191):
    """These groups were decided."""

    table: Number
    items: Annotated[tuple[tuple[Shard, Group], ...], msgspec.Meta(max_length=MOST)]


class Activated(Message, frozen=True, tag=206):
    """I know: (shard, version)."""

    table: Number
    items: Pairs


class Handover(Message, frozen=True, tag=192):
    """Lead these shards: (shard, ballot that I led with and have stopped)."""

    table: Number
    items: Pairs


class RouteRequest(Message, frozen=True, tag=193):
    """Who leads that shard? The answer goes to `asker`."""

    table: Number
    shard: Shard
    asker: WireName
    endpoints: Endpoints
    hops: Annotated[int, msgspec.Meta(ge=0, le=8)]


class Route(Message, frozen=True, tag=194):
    """That group, led with that ballot; 0: by nobody that I know of."""

    table: Number
    shard: Shard
    group: Group
    ballot: Number
    hops: Annotated[int, msgspec.Meta(ge=0, le=8)] = 0


class Beat(Message, frozen=True, tag=195):
    """I lead shards that you follow; these are the digests of them, by branch."""

    table: Number
    branches: Annotated[tuple[Number, ...], msgspec.Meta(min_length=BRANCHES, max_length=BRANCHES)]
    full: bool = False


class Differs(Message, frozen=True, tag=196):
    """These are mine of the branches that differ: (shard, promised, digest)."""

    table: Number
    branches: Annotated[tuple[int, ...], msgspec.Meta(max_length=BRANCHES)]
    items: Triples
    full: bool = False  # the node has no room


class TableRequest(Message, frozen=True, tag=197):
    """Do you know of a table?"""


class TableKnown(Message, frozen=True, tag=198):
    """This one: its number, and what the first groups are computed from."""

    table: Number
    bits: Annotated[int, msgspec.Meta(ge=0, le=16)]
    replicas: Annotated[int, msgspec.Meta(ge=1, le=7)]
    founders: Annotated[tuple[Member, ...], msgspec.Meta(max_length=MOST)]
    points: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0  # of a server on its zone's ring


class Locate(Message, frozen=True, tag=200):
    """Who would keep these shards in your zone, `count` of each?"""

    table: Number
    zone: Zone
    count: Annotated[int, msgspec.Meta(ge=1, le=14)]
    shards: Shards
    asker: WireName
    endpoints: Endpoints
    hops: Annotated[int, msgspec.Meta(ge=0, le=8)]


class Located(Message, frozen=True, tag=201):
    """These, by index into `members`."""

    table: Number
    zone: Zone
    members: Annotated[tuple[Member, ...], msgspec.Meta(max_length=MOST)]
    items: Annotated[
        tuple[tuple[Shard, Annotated[tuple[int, ...], msgspec.Meta(max_length=14)]], ...],
        msgspec.Meta(max_length=MOST),
    ]


class Bind(Message, frozen=True, tag=202):
    """I keep nothing: through whom may I ask?"""

    asker: WireName
    endpoints: Endpoints
    hops: Annotated[int, msgspec.Meta(ge=0, le=8)]


class Bound(Message, frozen=True, tag=203):
    """Through these."""

    table: Number
    bits: Annotated[int, msgspec.Meta(ge=0, le=16)]
    servers: Annotated[tuple[Member, ...], msgspec.Meta(max_length=8)]


class Watch(Message, frozen=True, tag=204):
    """Tell me of changes of a key; I know (ballot, sequence). Ends unless it is renewed."""

    table: Number
    id: Number
    shard: Shard
    key: Key
    ballot: Number
    sequence: Number
    ends: bool = False


class Changed(Message, frozen=True, tag=205):
    """The watched key has this value."""

    id: Number
    key: Key
    ballot: Number
    sequence: Number
    value: Value | None


Any_: TypeAlias = (
    Request | Reply | Confirm | Confirmed | Prepare | Promise | Pull | Pulled | Accept | Accepted
    | Offer | Want | Copy | Decide | Decided | Activate | Handover | RouteRequest | Route | Beat
    | Differs | TableRequest | TableKnown | Locate | Located | Bind | Bound | Watch
    | Changed | Activated
)  # fmt: skip

MESSAGES: tuple[type[Message], ...] = get_args(Any_)
