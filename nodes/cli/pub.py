"""`overlay pub`: publish lines, a file, a text, or made-up messages to a topic."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import msgspec
import typer

from nodes.cli.asking import NodeName
from nodes.cli.output import AsJson, complain, counted, print_json
from nodes.cli.topic_options import (
    Bind,
    Insecure,
    Keys,
    Name,
    Overlay,
    Seeds,
    Sets,
    Words,
    Zone,
    checked,
    own_peer,
    through_node,
)
from nodes.control import ControlError, Talk

BATCH_BYTES = 1 << 18  # that cross to the node at once
BATCH_ITEMS = 2000
PACE = 0.01  # s: messages that are due within it leave together
SUBSCRIBERS_WITHIN = 3.0  # s that a new peer waits to hear who subscribes

Reliability = Literal["ack", "nack", "ordered", "unordered"]

_encode = msgspec.msgpack.Encoder().encode


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(pub)


def pub(
    topic: Annotated[str, typer.Argument(help="Where to publish: words parted by '/'.")],
    texts: Annotated[Words, typer.Argument(help="Texts to publish, as by --message.")] = None,
    message: Annotated[
        Words, typer.Option("--message", "-m", help="A text to publish; repeatable.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A file to publish as one message."),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(min=1, help="How often: the text or file, or made-up messages."),
    ] = None,
    size: Annotated[
        int, typer.Option(min=1, max=1 << 26, help="Bytes of a made-up message.")
    ] = 100,
    rate: Annotated[
        float | None, typer.Option(min=0.001, max=1e7, help="Messages a second, at most.")
    ] = None,
    reliability: Annotated[
        Reliability, typer.Option(help="ack and nack lose nothing; ack waits for subscribers.")
    ] = "ack",
    keep: Annotated[
        int,
        typer.Option(
            min=0, max=10_000_000, help="Keep so many, while it runs, for who joins late."
        ),
    ] = 0,
    linger: Annotated[
        float, typer.Option(min=0, max=3600, help="Seconds to serve who lacks something.")
    ] = 5.0,
    wait: Annotated[
        int | None,
        typer.Option(min=0, help="Subscribers to wait for before the first message."),
    ] = None,
    node: NodeName = None,
    seed: Seeds = None,
    name: Name = "",
    zone: Zone = "",
    overlay: Overlay = "",
    keys: Keys = None,
    insecure: Insecure = False,
    bind: Bind = None,
    sets: Sets = None,
    json: AsJson = False,
) -> None:
    """Publish to a topic: each line of standard input, or what the options say.

    A node of this machine publishes it; with --seed a peer of its own does, which joins first.
    Ends when all subscribers have everything. Ctrl-C ends the input; a second one, the wait.
    """
    from overlay.patterns import check_topic

    checked(check_topic, topic)
    items = source([*(texts or ()), *(message or ())], file, count, size)
    own: dict[str, Any] = {"name": name, "zone": zone, "overlay": overlay, "keys": keys}
    own |= {"insecure": insecure, "bind": bind, "sets": sets}
    path = through_node(node, seed, own)
    config = {"reliability": reliability, "keep": keep, "linger": linger}
    batches = paced(items, rate) if rate is not None else items
    started = time.monotonic()
    if path is not None:
        told = _drive(NodeOutlet(path, topic, config, wait or 0), batches)
    else:
        with own_peer(seed, own) as peer:
            told = _drive(OwnOutlet(peer, topic, config, wait), batches)
    told |= {"topic": topic, "seconds": time.monotonic() - started}
    if json:
        print_json(told)
        return
    sent = counted(told["published"], "message")
    if told["subscribers"]:
        print(f"{sent} to {topic} for {', '.join(told['subscribers'])}")
    else:
        print(f"{sent} to {topic}, to which nobody subscribes")


# -- what is published --------------------------------------------------------------------------


def source(
    texts: Words, file: Path | None, count: int | None, size: int
) -> Iterator[list[str | bytes]]:
    """Batches of messages; standard input as it comes."""
    if texts and file is not None:
        raise typer.BadParameter("say --message or --file, not both", param_hint="--file")
    if file is not None:
        content = file.read_bytes()
        return batched(repeat(content, count or 1), len(content))
    if texts:
        words = [_text(os.fsencode(text)) for text in texts]  # Python takes in no other bytes
        longest = max(map(len, words))
        return batched(chain.from_iterable(repeat(words, count or 1)), longest)
    if count is not None:
        return batched((f"{k + 1} ".encode().ljust(size, b".")[:size] for k in range(count)), size)
    return lines(sys.stdin.buffer)


def batched(items: Iterable[str | bytes], size: int) -> Iterator[list[str | bytes]]:
    """Together what fits into a batch."""
    many = max(1, min(BATCH_ITEMS, BATCH_BYTES // max(size, 1)))
    rest = iter(items)
    while batch := list(islice(rest, many)):
        yield batch


def lines(stream: Any) -> Iterator[list[str | bytes]]:
    """The lines that are there, without their ends: text, or bytes where they are no UTF-8."""
    left = b""
    while part := stream.read1(BATCH_BYTES):
        *whole, left = (left + part).split(b"\n")
        if whole:
            yield [_text(line) for line in whole]
    if left:
        yield [_text(left)]


def _text(line: bytes) -> str | bytes:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line


def paced(batches: Iterable[list[str | bytes]], rate: float) -> Iterator[list[str | bytes]]:
    """No more messages than the rate allows."""
    many = max(1, int(rate * PACE))
    due = time.monotonic()
    for batch in batches:
        for at in range(0, len(batch), many):
            part = batch[at : at + many]
            pause = due - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            yield part
            due = max(due, time.monotonic() - 1.0) + len(part) / rate


# -- who publishes it ---------------------------------------------------------------------------


class Outlet(Protocol):
    """Where batches go."""

    def publish(self, batch: list[str | bytes]) -> None:
        """Take a batch; waits while subscribers are behind."""

    def finish(self) -> dict[str, Any]:
        """Wait until all have it; returns `published` and `subscribers`."""

    def close(self) -> None:
        """End it, done or not."""


def _drive(outlet: Outlet, batches: Iterable[list[str | bytes]]) -> dict[str, Any]:
    try:
        try:
            for batch in batches:
                outlet.publish(batch)
        except KeyboardInterrupt:
            complain("no more is read; waiting for subscribers, Ctrl-C ends that")
        return outlet.finish()
    finally:
        outlet.close()


class NodeOutlet:
    """A node of this machine publishes."""

    def __init__(self, path: Path, topic: str, config: dict[str, Any], wait: int) -> None:
        self._talk = Talk(path, "pub", topic=topic, config=config, subscribers=wait)

    def publish(self, batch: list[str | bytes]) -> None:
        """See Outlet."""
        while self._talk.has_news():
            self._talk.next()  # progress; an error is raised
        self._talk.send(msgspec.json.encode(_encode(batch)))

    def finish(self) -> dict[str, Any]:
        """See Outlet."""
        self._talk.finish()
        for told in self._talk.values():
            if told.get("done"):
                return {key: told[key] for key in ("published", "subscribers", "node")}
            _tell_progress(told["published"], told["unacknowledged"])
        raise ControlError("the node stopped before all subscribers had everything")

    def close(self) -> None:
        """See Outlet."""
        self._talk.close()


class OwnOutlet:
    """A peer of its own publishes."""

    def __init__(self, peer: Any, topic: str, config: dict[str, Any], wait: int | None) -> None:
        self._peer = peer
        self._out = peer.publisher(topic, **config)
        self._seen: dict[str, None] = {}  # one that has what it wanted may leave before the end
        if wait is not None:
            self._out.wait_for_subscribers(wait)
            return
        try:
            self._out.wait_for_subscribers(1, timeout=SUBSCRIBERS_WITHIN)
        except TimeoutError:
            complain(f"nobody subscribes to {topic!r} so far")

    def publish(self, batch: list[str | bytes]) -> None:
        """See Outlet."""
        self._note_subscribers()
        self._out.publish_many(batch)

    def finish(self) -> dict[str, Any]:
        """See Outlet."""
        self._note_subscribers()
        while True:
            try:
                self._out.flush(timeout=1.0)
                break
            except TimeoutError:
                _tell_progress(self._out.published, self._out.unacknowledged)
        self._note_subscribers()
        told = {
            "published": self._out.published,
            "subscribers": list(self._seen),
            "node": self._peer.name,
        }
        self._out.wait_closed()
        return told

    def _note_subscribers(self) -> None:
        self._seen.update(dict.fromkeys((*self._out.subscribers, *self._out.gateways)))

    def close(self) -> None:
        """See Outlet."""
        self._out.abandon()


def _tell_progress(published: int, waiting: int) -> None:
    if sys.stderr.isatty():
        complain(f"{counted(published, 'message')}, {waiting} not acknowledged yet")
