"""The whole history of some topics: what was published, what each reader got, and what it was told.

A message says who published it, in which stream and under which number, so that nothing depends on
what the protocol claims about it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from overlay.ids import NodeId
from protocols.topics import Batch, Gap

Stream = tuple[NodeId, int]


class Reading(msgspec.Struct):
    """What one reader got of one stream."""

    numbers: list[int] = msgspec.field(default_factory=list)
    gaps: list[tuple[int, int]] = msgspec.field(default_factory=list)  # that it was told of
    owed_from: int | None = None  # it was taking part when this one was published


class Reader(msgspec.Struct):
    """One subscription of one life of a node."""

    name: NodeId
    life: int
    ordered: bool = True
    readings: dict[Stream, Reading] = msgspec.field(default_factory=dict)
    told: list[str] = msgspec.field(default_factory=list)  # that it, or a publisher, failed
    gone: bool = False  # it crashed or unsubscribed: nothing more is owed

    def reading(self, stream: Stream) -> Reading:
        """What it got of that stream."""
        return self.readings.setdefault(stream, Reading())


class History:
    """Collects, and in the end judges."""

    def __init__(self) -> None:
        self.published: dict[Stream, int] = {}  # the last number of each
        self.unordered: dict[Stream, None] = {}
        self.readers: list[Reader] = []
        self.delivered = 0

    def publish(self, stream: Stream, number: int) -> list[object]:
        """The message that says so."""
        self.published[stream] = number
        return [*stream, number]

    def take(self, reader: Reader, batch: Batch) -> None:
        """Some messages arrived."""
        for place, message in enumerate(batch.items):
            publisher, stream, number = message
            assert publisher == batch.publisher, f"{batch.publisher} published {message}"
            assert number == batch.first + place, f"message {number} came as {batch.first + place}"
            reader.reading((publisher, stream)).numbers.append(number)
        self.delivered += len(batch.items)

    def told(self, reader: Reader, gap: Gap) -> None:
        """A reader was told of a gap."""
        reader.reading((gap.publisher, gap.stream)).gaps.append((gap.first, gap.last))

    def owe(self, readers: Iterable[Reader], stream: Stream) -> None:
        """From the next message of that stream on these readers must get all, or be told."""
        for reader in readers:
            reading = reader.reading(stream)
            if reading.owed_from is None:
                reading.owed_from = self.published.get(stream, 0) + 1

    def complete(self, stream: Stream) -> bool:
        """Whether every reader that is owed the last message has it, or knows that it is gone."""
        last = self.published.get(stream, 0)
        for reader in self.readers:
            reading = reader.readings.get(stream)
            if reader.gone or reading is None or reading.owed_from is None:
                continue
            if last >= reading.owed_from and not self._knows(reading, last):
                return False
        return True

    @staticmethod
    def _knows(reading: Reading, number: int) -> bool:
        if reading.numbers and reading.numbers[-1] >= number:
            return True
        return any(first <= number <= last for first, last in reading.gaps)

    def check(self, *, gaps_allowed: bool) -> None:
        """AssertionError unless each reader got each stream once, in order and without a loss."""
        for reader in self.readers:
            for stream, reading in reader.readings.items():
                if stream in self.unordered:
                    continue
                self._check_order(reader, stream, reading)
                self._check_losses(reader, stream, reading, gaps_allowed)

    def _check_order(self, reader: Reader, stream: Stream, reading: Reading) -> None:
        before = 0
        for number in reading.numbers:
            assert number > before, (
                f"{reader.name} got {number} of {stream} after {before}: twice, or out of order"
            )
            before = number

    def _check_losses(
        self, reader: Reader, stream: Stream, reading: Reading, gaps_allowed: bool
    ) -> None:
        if reading.owed_from is None and not reading.numbers:
            return
        assert gaps_allowed or not reading.gaps, (
            f"{reader.name} was told that {reading.gaps} of {stream} are gone"
        )
        known = {number for first, last in reading.gaps for number in range(first, last + 1)} | set(
            reading.numbers
        )
        begin = reading.numbers[0] if reading.numbers else None
        if reading.owed_from is not None:
            begin = reading.owed_from if begin is None else min(begin, reading.owed_from)
        assert begin is not None
        # One that is gone has a prefix; all others have everything.
        end = max(known, default=0) if reader.gone else self.published.get(stream, 0)
        lost = [number for number in range(begin, end + 1) if number not in known]
        assert not lost, (
            f"{reader.name} never got {lost[:5]} … of {len(lost)} of {stream}, and was not told"
        )
