"""The full view of a zone: records, ring, attributes, and the digest of all that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from overlay.errors import InvariantViolation
from overlay.ids import NodeId, Ring, vid_of
from overlay.protocol import Scope
from protocols.membership.attributes import (
    NO_ATTRIBUTES,
    ROLES,
    Attribute,
    AttributeSet,
    Value,
    first_version,
)
from protocols.membership.messages import BUCKET_BYTES, BUCKETS
from protocols.membership.records import Record, State, fingerprint


def bucket_of(name: NodeId) -> int:
    """Which of the buckets of the digest a member is in."""
    return vid_of(name) % BUCKETS


def draw_from(
    roster: list[NodeId], rng: Random, count: int, besides: tuple[NodeId, ...]
) -> list[NodeId]:
    """Up to `count` different random names of a roster, none of `besides`."""
    size = len(roster)
    if size < 2 * (count + len(besides)):
        others = [name for name in roster if name not in besides]
        return rng.sample(others, min(count, len(others)))
    drawn: list[NodeId] = []
    while len(drawn) < count:  # each try hits with at least one half
        name = roster[int(rng.random() * size)]
        if name not in besides and name not in drawn:
            drawn.append(name)
    return drawn


class MemberTable:
    """Implements `MembershipView`; only the machine changes it."""

    __slots__ = (
        "_attributes", "_buckets", "_gone", "_records", "_ring", "_roster", "_touched",
        "digest", "me", "version", "zone",
    )  # fmt: skip

    def __init__(self, zone: Scope, me: NodeId) -> None:
        self.zone = zone
        self.me = me
        self.version = 0
        self.digest = 0  # XOR of all buckets
        self._records: dict[NodeId, Record] = {}
        self._attributes: dict[NodeId, AttributeSet] = {}
        self._ring = Ring()
        self._roster: list[NodeId] = []  # the same names, in an order that is cheap to draw from
        self._buckets = [0] * BUCKETS
        self._gone: dict[NodeId, float] = {}  # when each was found dead or left, oldest first
        self._touched: dict[NodeId, None] = {}  # changed since the last `check`

    # -- MembershipView -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._roster)

    def __contains__(self, name: object) -> bool:
        record = self._records.get(name)  # type: ignore[call-overload]
        return record is not None and record.state <= State.SUSPECT

    def members(self) -> tuple[NodeId, ...]:
        """All who are present, clockwise on the ring."""
        return tuple(self._ring)

    def record(self, name: NodeId) -> Record | None:
        """What is known of a member, present, dead or left; None for strangers."""
        return self._records.get(name)

    def ring(self) -> Ring:
        """The ring of all who are present; do not change it."""
        return self._ring

    def attributes(self, name: NodeId) -> dict[str, Value]:
        """The attributes of a member; empty for strangers."""
        return self._attributes.get(name, NO_ATTRIBUTES).values()

    def roles(self, name: NodeId) -> tuple[str, ...]:
        """What a member serves as."""
        held = self._attributes.get(name, NO_ATTRIBUTES).get(ROLES)
        if held is None or not isinstance(held.value, str):
            return ()
        return tuple(filter(None, held.value.split(",")))

    # -- for the machine ------------------------------------------------------------------------

    def records(self) -> Iterable[Record]:
        """Everything known, the dead included."""
        return self._records.values()

    def present(self) -> Iterator[Record]:
        """The records of all who are present."""
        return (record for record in self._records.values() if record.state <= State.SUSPECT)

    def attribute_set(self, name: NodeId) -> AttributeSet:
        """All versions of attributes of a member."""
        return self._attributes.get(name, NO_ATTRIBUTES)

    def gone(self) -> dict[NodeId, float]:
        """Who is remembered though dead or gone, and since when; the oldest first."""
        return self._gone

    def draw(self, rng: Random, count: int, *besides: NodeId) -> list[NodeId]:
        """Up to `count` different random members, neither me nor `besides`."""
        return draw_from(self._roster, rng, count, (self.me, *besides))

    def put(self, record: Record, now: float) -> None:
        """Take a newer record of a member."""
        name = record.name
        old = self._records.get(name)
        if old is not None and record.incarnation < old.incarnation:
            raise InvariantViolation(f"{self.me}: {name}'s incarnation went back: {old}, {record}")
        mark = self._mark(name)
        self._touched[name] = None
        self._records[name] = record
        if old is not None and old.life != record.life:
            # The new life starts without the attributes of the old one.
            kept = self._attributes.pop(name, None)
            for attribute in kept or ():
                if attribute.version >= first_version(record.born):
                    self._writable(name).put(attribute)
        self._replace_mark(name, mark)
        was, present = old is not None and old.present, record.present
        if present and not was:
            self._ring.add(name)
            self._roster.append(name)
            self._gone.pop(name, None)
        elif was and not present:
            self._ring.remove(name)
            self._roster.remove(name)
        if not present and name not in self._gone:
            self._gone[name] = now
        self.version += 1

    def put_attribute(self, attribute: Attribute) -> None:
        """Take a newer version of an attribute of a known member."""
        mark = self._mark(attribute.member)
        held = self.attribute_set(attribute.member)
        if not held.is_news(attribute):
            raise InvariantViolation(f"{self.me}: a version went back: {attribute}")
        self._writable(attribute.member).put(attribute)
        self._replace_mark(attribute.member, mark)
        self.version += 1

    def forget(self, name: NodeId) -> None:
        """Remember one who is gone no longer."""
        del self._gone[name]
        del self._records[name]
        self._attributes.pop(name, None)
        self._touched[name] = None

    def _writable(self, name: NodeId) -> AttributeSet:
        return self._attributes.setdefault(name, AttributeSet())

    # -- digest ---------------------------------------------------------------------------------

    def _mark(self, name: NodeId) -> int:
        """What a member contributes to the digest; those who are gone contribute nothing.

        Peers forget the dead at different times, which must not look like a difference.
        """
        record = self._records.get(name)
        if record is None or record.state > State.SUSPECT:
            return 0
        mark = fingerprint(name, record.incarnation, record.life)
        held = self._attributes.get(name)
        return mark if held is None else mark ^ held.digest

    def _replace_mark(self, name: NodeId, old: int) -> None:
        change = old ^ self._mark(name)
        self._buckets[bucket_of(name)] ^= change
        self.digest ^= change

    def packed_buckets(self) -> bytes:
        """The digests of all buckets, for a Sync."""
        return b"".join(bucket.to_bytes(BUCKET_BYTES, "big") for bucket in self._buckets)

    def differing(self, packed: bytes) -> list[int]:
        """The buckets in which a peer's view is not the same."""
        mine = self.packed_buckets()
        return [
            at
            for at in range(BUCKETS)
            if mine[at * BUCKET_BYTES : (at + 1) * BUCKET_BYTES]
            != packed[at * BUCKET_BYTES : (at + 1) * BUCKET_BYTES]
        ]

    # -- invariants -----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise InvariantViolation when what changed since the last time does not fit together."""
        if len(self._roster) != len(self._ring):
            raise InvariantViolation(f"{self.me}: ring and roster of {self.zone!r} differ")
        if len(self._records) != len(self._roster) + len(self._gone):
            raise InvariantViolation(f"{self.me}: members of {self.zone!r} are lost or twice there")
        while self._touched:
            name, _ = self._touched.popitem()
            record = self._records.get(name)
            present = record is not None and record.present
            if (name in self._ring) != present or (name in self._gone) == (present or not record):
                raise InvariantViolation(f"{self.me}: {name} is misplaced in {self.zone!r}")

    def audit(self) -> None:
        """Check everything: for the end of a scenario, since it takes a look at each member."""
        self.check()
        if sorted(self._roster) != sorted(self._ring):
            raise InvariantViolation(f"{self.me}: ring and roster of {self.zone!r} differ")
        buckets = [0] * BUCKETS
        for name, record in self._records.items():
            if (name in self._ring) != record.present or (name in self._gone) == record.present:
                raise InvariantViolation(f"{self.me}: {name} is misplaced in {self.zone!r}")
            buckets[bucket_of(name)] ^= self._mark(name)
        if buckets != self._buckets:
            raise InvariantViolation(f"{self.me}: the digest of {self.zone!r} is wrong")
        if not self._attributes.keys() <= self._records.keys():
            raise InvariantViolation(f"{self.me}: attributes of nobody in {self.zone!r}")
