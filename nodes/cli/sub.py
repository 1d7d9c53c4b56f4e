"""`overlay sub`: print the messages of all topics that a pattern covers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

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
from nodes.control import ControlError, ask, follow, name_of

MOST_BYTES = 128 << 20  # the longest message, in base64
SHOWN_BYTES = 64  # of a message that is no text, for people
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_encode = msgspec.msgpack.Encoder().encode


class Batch(NamedTuple):
    """Consecutive messages of one publisher."""

    topic: str
    publisher: str
    first: int
    sent_at: float
    items: list[Any]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sub)


def sub(
    pattern: Annotated[
        str, typer.Argument(help="A topic; '*' stands for one level, '**' for any number.")
    ],
    raw: Annotated[
        bool, typer.Option("--raw", help="The bytes of each message, and nothing between them.")
    ] = False,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    replay: Annotated[
        str,
        typer.Option(help="What publishers still have: 'all', the last 10, or of the last '30s'."),
    ] = "",
    within: Annotated[
        float | None, typer.Option(min=0.01, help="Fail when none comes for so many seconds.")
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
    """Print each message of the topics that a pattern covers, until Ctrl-C.

    A node of this machine subscribes; with --seed a peer of its own does, which joins first.
    What is lost for good is told on standard error.
    """
    from overlay.patterns import check_pattern

    checked(check_pattern, pattern)
    if raw and json:
        raise typer.BadParameter("say --raw or --json, not both", param_hint="--raw")
    wanted = parse_replay(replay)
    own: dict[str, Any] = {"name": name, "zone": zone, "overlay": overlay, "keys": keys}
    own |= {"insecure": insecure, "bind": bind, "sets": sets}
    path = through_node(node, seed, own)
    show = print_raw if raw else print_as_json if json else print_line
    left = count
    try:
        with (
            from_node(path, pattern, wanted, within)
            if path is not None
            else from_own(seed, own, pattern, wanted, within)
        ) as batches:
            for batch in batches:
                taken = batch if left is None else batch._replace(items=batch.items[:left])
                show(taken)
                if left is not None:
                    left -= len(taken.items)
                    if left == 0:
                        return
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    except TimeoutError as error:
        raise ControlError(str(error)) from None


class Ago(NamedTuple):
    """What was sent since so long ago: only a node knows what overlay time that is."""

    seconds: float

    def before(self, now: float) -> tuple[int, float]:
        """The replay that it means at that overlay time."""
        from protocols.topics.subscription import Replay

        return Replay.since(now - self.seconds)


def parse_replay(text: str) -> tuple[int, float] | Ago:
    """`all`, `10` (messages) or `30s`: as the fields of a Replay, or how long ago."""
    from protocols.topics.subscription import Replay

    if not text:
        return Replay()
    if text == "all":
        return Replay.all()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return Replay.last(int(text))
    if found := re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhd])", text, re.ASCII):
        return Ago(float(found[1]) * UNITS[found[2]])
    raise typer.BadParameter(
        f"{text!r}: say all, a number of messages, or a time like 30s, 5m, 2h, 1d",
        param_hint="--replay",
    )


# -- where they come from -------------------------------------------------------------------------


@contextmanager
def from_node(
    path: Path, pattern: str, wanted: tuple[int, float] | Ago, within: float | None
) -> Iterator[Iterator[Batch]]:
    """A node of this machine subscribes."""
    replay = wanted.before(ask(path, "time")["now"]) if isinstance(wanted, Ago) else wanted
    told = follow(
        path, "sub", most=MOST_BYTES, silence=within, pattern=pattern, replay=tuple(replay)
    )
    with closing(told):
        heading = next(told)
        _say_begun(pattern, heading["node"])
        yield _told_batches(path, told)


def _told_batches(path: Path, told: Iterator[Any]) -> Iterator[Batch]:
    for one in told:
        if "lost" in one:
            complain(f"{counted(one['lost'], 'message')} lost for good")
            continue
        packed = msgspec.convert(one.pop("items"), bytes)
        yield Batch(**one, items=msgspec.msgpack.decode(packed))
    raise ControlError(f"{name_of(path)} stopped")


@contextmanager
def from_own(
    seeds: Words,
    own: dict[str, Any],
    pattern: str,
    wanted: tuple[int, float] | Ago,
    within: float | None,
) -> Iterator[Iterator[Batch]]:
    """A peer of its own subscribes."""
    from protocols.topics.subscription import Replay

    with own_peer(seeds, own) as peer:
        replay = wanted.before(peer.now()) if isinstance(wanted, Ago) else wanted
        with peer.subscribe(pattern, replay=Replay(*replay), timeout=within) as messages:
            _say_begun(pattern, peer.name)
            yield _own_batches(messages)


def _own_batches(messages: Any) -> Iterator[Batch]:
    lost = 0
    for one in messages.batches():
        if messages.lost > lost:
            complain(f"{counted(messages.lost - lost, 'message')} lost for good")
            lost = messages.lost
        yield Batch(one.topic, one.publisher, one.first, one.sent_at, one.items)


def _say_begun(pattern: str, name: str) -> None:
    if sys.stderr.isatty():
        complain(f"{name} subscribed to {pattern}; Ctrl-C ends this")


# -- how they are shown ---------------------------------------------------------------------------


def print_line(batch: Batch) -> None:
    """For people: the topic, and the message in one line."""
    for item in batch.items:
        print(f"{batch.topic} {_readable(item)}")
    sys.stdout.flush()


def _readable(item: Any) -> str:
    if isinstance(item, bytes):
        try:
            return _readable(item.decode())
        except UnicodeDecodeError:
            rest = f"… ({len(item)} bytes)" if len(item) > SHOWN_BYTES else ""
            return item[:SHOWN_BYTES].hex(" ") + rest
    if not isinstance(item, str):
        return _json(item)
    return item if item.isprintable() else _json(item)  # a terminal must not obey a peer


def print_as_json(batch: Batch) -> None:
    """For programs: a line each; a message of bytes is in base64, under that name.

    What JSON cannot say is `msgpack`: the message in MessagePack, in base64.
    """
    for sequence, item in enumerate(batch.items, batch.first):
        heading = {
            "topic": batch.topic,
            "publisher": batch.publisher,
            "sequence": sequence,
            "sent_at": batch.sent_at,
        }
        try:
            print_json(heading | {"base64" if isinstance(item, bytes) else "data": item})
        except (TypeError, ValueError):
            print_json(heading | {"msgpack": _encode(item)})
    sys.stdout.flush()


def _json(item: Any) -> str:
    try:
        return msgspec.json.encode(item).decode()
    except (TypeError, ValueError):
        return ascii(item)  # MessagePack can say more than JSON


def print_raw(batch: Batch) -> None:
    """For pipes: bytes as they are, text as UTF-8, anything else as MessagePack."""
    for item in batch.items:
        if isinstance(item, str):
            sys.stdout.buffer.write(item.encode())
        else:
            sys.stdout.buffer.write(item if isinstance(item, bytes) else _encode(item))
    sys.stdout.buffer.flush()
