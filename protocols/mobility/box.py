"""What one broker keeps for one visit of one subscriber: a numbered, bounded log."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias

import msgspec

from overlay.ids import NodeId
from overlay.predicates import Constraint
from protocols.mobility.keeping_messages import MAX_MARKS, Batch, Kept, Place, Stand

COUNT, BYTES, AGE = "too many were kept", "too many bytes were kept", "kept for too long"
SILENT = "the old broker does not answer"
FORGOTTEN = "the old broker forgot what it kept"
RESTARTED = "the broker was restarted"

Mark: TypeAlias = tuple[str, str]  # subscription and advertisement
Standing: TypeAlias = tuple[int, int]  # epoch and sequence


class Marks:
    """How far each stream has come for each subscription: nothing passes twice, or too late."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: OrderedDict[Mark, Standing] = OrderedDict()
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._last)

    def passes(self, entry: Kept | Stand) -> bool:
        """Whether it is later than all before; then it is the last one from now on."""
        mark, place = (entry.subscription, entry.advertisement), (entry.epoch, entry.sequence)
        if place <= self._last.get(mark, (-1, 0)):
            return False
        self._last[mark] = place
        self._last.move_to_end(mark)
        if len(self._last) > self._most:
            self._last.popitem(last=False)
            self.forgotten += 1
        return True

    def stands(self) -> tuple[Stand, ...]:
        """The newest of them, for another broker."""
        newest = islice(reversed(self._last.items()), MAX_MARKS)
        return tuple(Stand(*mark, *place) for mark, place in newest)


class Inlet:
    """The end of a box's way: takes each entry once, and sees what is missing."""

    __slots__ = ("next",)

    def __init__(self, start: int) -> None:
        self.next = start

    def take(self, msg: Batch) -> Iterator[Kept]:
        """The entries that follow; a gap first where a bound put some out."""
        base = max(self.next, msg.taken)
        if msg.oldest > base:
            lost = max(msg.lost - (base - msg.taken), msg.oldest - base)
            yield Kept("", lost=lost, reason=msg.reason)
        self.next = max(base, msg.oldest)
        for number, entry in enumerate(msg.entries, msg.start):
            if number == self.next:  # an earlier one came twice; a later one will come again
                self.next += 1
                yield entry


class Source:
    """Where the older part of a box is fetched from: the places still to be asked, newest first."""

    __slots__ = ("deadline", "inlet", "missed", "place", "places")

    def __init__(self, places: tuple[Place, ...]) -> None:
        self.places = deque(places)
        self.place: Place | None = None
        self.inlet = Inlet(0)
        self.deadline = 0.0
        self.missed = ""  # why a place that kept something could not be asked

    def turn(self, deadline: float) -> Place | None:
        """Go on to the next place, if there is one."""
        self.place = self.places.popleft() if self.places else None
        if self.place is not None:
            self.inlet = Inlet(self.place.next)
            self.deadline = deadline
        return self.place

    def left(self) -> tuple[Place, ...]:
        """Those to be asked by a later life of this broker."""
        if self.place is None:
            return tuple(self.places)
        return (msgspec.structs.replace(self.place, next=self.inlet.next), *self.places)


class Line(NamedTuple):
    """An entry in the log."""

    entry: Kept
    size: int
    at: float  # when it came here


class Wanted(NamedTuple):
    """A subscription of the subscriber, for which the broker stands in under another name."""

    constraint: Constraint
    model: str
    stand_in: str


class Box:
    """One subscriber's. Entries have numbers from 1; those before `taken` are with the subscriber.

    It belongs to the subscriber, or, once a later visit fetches it, to that visit's broker.
    """

    def __init__(self, id: int, client: NodeId, visit: int, marks: Marks) -> None:
        self.id = id
        self.client = client
        self.visit = visit
        self.revision = 0
        self.wants: dict[str, Wanted] = {}
        self.marks = marks
        self.lines: deque[Line] = deque()
        self.bytes = 0
        self.taken = self.oldest = self.next = 1
        self.lost = 0  # publications that were put out and not taken
        self.reason = ""  # why the last entry was put out
        self.held: deque[Line] = deque()  # own ones that wait until older ones are fetched
        self.held_lost = 0
        self.source: Source | None = None
        self.absorbed: tuple[int, ...] = ()  # earlier visits to this broker that go on in this one
        # -- who takes --------------------------------------------------------------------------
        self.outlet: NodeId = client
        self.by = 0  # the later visit that fetches it; 0: the subscriber is here, or away
        self.is_away = False
        self.keep_for = 0.0
        self.heard_at = 0.0
        self.sent = 1
        self.moved_at = 0.0  # when something was taken, or sent for the first time
        self.overlaps_until = 0.0
        self.asked_at = 0.0
        self.told_complete = False  # the subscriber knows that nothing is fetched any more

    @property
    def is_drained(self) -> bool:
        """Whether all of it is with who fetches it, and nothing more comes."""
        return bool(self.by) and not self.wants and self.source is None and self.taken == self.next

    def append(self, line: Line) -> int:
        """Its number."""
        self.lines.append(line)
        self.bytes += line.size
        self.next += 1
        return self.next - 1

    def put_out(self, reason: str) -> int:
        """Drop the oldest; its number."""
        line = self.lines.popleft()
        self.bytes -= line.size
        self.oldest += 1
        self.lost += max(1, line.entry.lost)  # it may be a gap itself
        self.reason = reason
        return self.oldest - 1

    def take(self, upto: int) -> range:
        """All before that number were taken; those that are dropped for it."""
        upto = max(self.taken, min(upto, self.next))
        first = self.oldest
        news = upto - self.taken  # perhaps some that were put out on their way
        self.lost = max(self.lost - news, self.oldest - upto) if upto < first else 0
        while self.oldest < upto:
            self.bytes -= self.lines.popleft().size
            self.oldest += 1
        self.taken = upto
        self.sent = max(self.sent, self.taken)
        return range(first, self.oldest)

    def batch(self, start: int, upto: int, most: int) -> Batch:
        """What follows from there: as much as fits into so many bytes, one at least."""
        entries: list[Kept] = []
        size = 0
        offset = start - self.oldest
        for line in islice(self.lines, offset, offset + upto - start):
            size += line.size
            if entries and size > most:
                break
            entries.append(line.entry)
        return Batch(
            self.client,
            self.visit,
            start,
            self.taken,
            self.oldest,
            self.lost,
            self.reason,
            tuple(entries),
        )
