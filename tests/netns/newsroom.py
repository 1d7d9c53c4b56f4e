"""Zones of newsreaders on the hosts of a lab, and the whole history of one topic.

One member of the first zone publishes, and all others read. Whoever reads is owed everything: the
first message is published only when all of them take part.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from nodes.peer_options import plain_words
from nodes.scenarios.topic_history import History, Reader, Stream
from overlay.ids import Ring
from protocols.gateways import gateway_key
from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.peers import LOOK_EVERY, LabPeer
from tests.netns.waiting import until

TOPIC = "plant/north/7"
RATE = 2000.0  # messages per second
# Zones that have just begun need not fill first, and members hear soon that there are others: only
# the start is shorter. What a death takes is that of the profile.
SETS = ("zones.settle=0.5", "zones.table_period=2.0")
TOLD = ("subscription-failed", "publisher-failed")


class Newsreader(LabPeer):
    """One newsreader, or the publisher."""

    def __init__(self, host: Host, zone: str, seeds: Iterable[Host], extra: Iterable[str]) -> None:
        self.zone = zone
        self.killed = False
        self._extra = tuple(extra)
        super().__init__(host, seeds, None, SETS, zone)

    def _command(self) -> list[str]:
        words = [sys.executable, "-m", "tests.netns.newsreader", TOPIC, *self._extra]
        return [*words, "--", *plain_words(self._options)]

    def kill(self) -> None:
        """SIGKILL; nothing more is owed to it."""
        self.killed = True
        super().kill()

    def told(self, key: str) -> list[dict[str, Any]]:
        """The lines that begin with that key."""
        assert self.process.lines_dropped == 0
        assert self.killed or self.process.is_running, self
        start = f'{{"{key}"'
        return [json.loads(line) for line in self.process.lines if line.startswith(start)]

    @property
    def last(self) -> int:
        """The number of the message that it got, or published, last; 0 before that."""
        published = self.told("published")
        if published:
            return int(published[-1]["published"])
        got = self.told("got")
        return int(got[-1]["runs"][-1][1]) if got else 0


class Newsroom:
    """Zones by their first letters: `{"a": 3}` has the members a1, a2 and a3."""

    def __init__(self, lab: Lab, sizes: Mapping[str, int], mode: str) -> None:
        self._members = {
            zone: [f"{zone}{number}" for number in range(1, size + 1)]
            for zone, size in sizes.items()
        }
        first = next(iter(sizes))
        author = next(name for name in self._members[first] if name != self._responsible(first))
        self.hosts = {
            name: lab.host(name) for members in self._members.values() for name in members
        }
        seeds = list(self.hosts.values())[:1]
        self.peers = {
            name: Newsreader(
                self.hosts[name],
                zone,
                seeds,
                ("--publish", mode, "--rate", str(RATE)) if name == author else (),
            )
            for zone, members in self._members.items()
            for name in members
        }
        self.publisher = self.peers[author]
        self.readers = [peer for peer in self.peers.values() if peer is not self.publisher]

    # -- who is who -----------------------------------------------------------------------------

    def _responsible(self, zone: str) -> str:
        return Ring(self._members[zone]).responsible_for(gateway_key(TOPIC))

    def gateway(self, zone: str) -> Newsreader:
        """Who stands for a zone: never the publisher, unless everybody else is dead."""
        return self.peers[self._responsible(zone)]

    def zone(self, zone: str) -> list[Host]:
        """The hosts of a zone."""
        return [self.hosts[name] for name in self._members[zone]]

    @property
    def alive(self) -> list[Newsreader]:
        """Readers that nobody killed."""
        return [reader for reader in self.readers if not reader.killed]

    @property
    def stream(self) -> Stream:
        """What the publisher calls its stream."""
        ((name, number),) = [line["stream"] for line in self.publisher.told("stream")]
        return name, number

    # -- acts -----------------------------------------------------------------------------------

    def gather(self) -> None:
        """Wait until everybody takes part."""

        def all_take_part() -> bool:
            return all(reader.events("publisher-appeared") for reader in self.readers)

        self._until(all_take_part, "everybody to take part")

    def begin(self) -> None:
        """Publish from now on."""
        self.publisher.ask("begin")

    def read_on(self, messages: int, readers: Iterable[Newsreader] | None = None) -> None:
        """Wait until all who live read that many more than are published now."""
        target = self.publisher.last + messages
        waiting = list(self.alive if readers is None else readers)
        self._until(
            lambda: all(reader.last >= target for reader in waiting),
            f"message {target} at {[reader.name for reader in waiting]}",
        )

    def publish_on(self, seconds: float) -> None:
        """Wait until so many more seconds' worth of messages are published."""
        target = self.publisher.last + seconds * RATE
        self._until(lambda: self.publisher.last >= target, f"message {target:g} to be published")

    def kill_gateway(self, zone: str) -> Newsreader:
        """Kill who stands for a zone."""
        victim = self.gateway(zone)
        assert victim is not self.publisher
        self._members[zone].remove(victim.name)
        victim.kill()
        return victim

    def finish(self) -> History:
        """Publish no more, and return the history once everybody has, or was told, everything."""
        self.publisher.ask("finish")
        self._until(lambda: self.publisher.told("finished"), "the publisher's flush")

        def all_arrived() -> bool:
            return self.history().complete(self.stream)

        self._until(all_arrived, "all messages")
        return self.history()

    # -- the history ----------------------------------------------------------------------------

    def history(self) -> History:
        """What was published, what each reader got, and what it was told."""
        history = History()
        history.published[self.stream] = self.publisher.last
        for reader in self.readers:
            record = Reader(reader.name, life=1, gone=reader.killed)
            record.reading(self.stream).owed_from = 1
            for line in reader.told("got"):
                name, number = line["got"]
                numbers = record.reading((name, number)).numbers
                for first, last in line["runs"]:
                    numbers.extend(range(first, last + 1))
            for gap in reader.events("gap"):
                reading = record.reading((gap["publisher"], gap["stream"]))
                reading.gaps.append((gap["first"], gap["last"]))
            record.told = [json.dumps(event) for event in reader.events(*TOLD)]
            history.readers.append(record)
        return history

    def _until(self, condition: Any, what: str) -> None:
        try:
            until(condition, every=LOOK_EVERY, what=what)
        except AssertionError as error:
            for peer in self.peers.values():
                lines = [line for line in peer.process.lines if not line.startswith('{"got"')]
                state = "killed" if peer.killed else f"at {peer.last}"
                error.add_note(f"{peer.name}, {state}:\n  " + "\n  ".join(lines[-15:]))
            raise
