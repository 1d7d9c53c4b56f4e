"""One node under test, and shorter words for what its neighbours tell it."""

from __future__ import annotations

from random import Random

from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.protocol import Event, Message
from protocols.content import Content, ContentSettings
from protocols.content.ledger import packed
from protocols.content.messages import (
    AdvertisementLine,
    Again,
    Change,
    Greeting,
    Page,
    SubscriptionLine,
)
from tests.recording import Emit, RecordingEffects, Send, TickEnd

BROKER = ContentSettings(role="broker")


class Node:
    """A broker (or a client), its neighbours, and what it does."""

    def __init__(
        self, settings: ContentSettings = BROKER, me: NodeId = "me", **views: object
    ) -> None:
        self.effects = RecordingEffects()
        self.content = Content(me, self.effects, Random(1), settings, **views)  # type: ignore[arg-type]
        self.handlers = self.content.message_handlers()
        self.stamps: dict[NodeId, int] = {}
        self.now = 100.0
        self.content.on_start(self.now, {})
        self.effects.drain()

    def done(self) -> list[Send | Emit]:
        """What it did, timers aside, to the end of the tick."""
        found: list[Send | Emit] = []
        while recorded := self.effects.drain():
            for effect in recorded:
                if isinstance(effect, Send | Emit):
                    found.append(effect)
                elif isinstance(effect, TickEnd):
                    effect.callback(self.now)
        self.content.check_invariants()
        self.content.router.audit()
        return found

    def hear(self, src: NodeId, msg: Message) -> list[Send | Emit]:
        """A message comes."""
        self.handlers[type(msg)](src, msg, self.now)
        return self.done()

    def timer(self, key: object) -> list[Send | Emit]:
        """A timer comes due."""
        self.content.on_timer(key, self.now)
        return self.done()

    def meet(self, *peers: NodeId, role: str = "broker") -> None:
        """These greet, and read the ledger from now on."""
        for peer in peers:
            self.hear(peer, greeting(role=role))
            self.hear(peer, Page(7, 1, 0, last=True))
            self.stamps[peer] = 1
            if peer in self.content.router.readers:
                self.hear(peer, Again(0))
        self.now += 10.0 * self.content.config.beat / 100

    def tell(
        self,
        src: NodeId,
        *lines: AdvertisementLine | SubscriptionLine,
        unadvertised: tuple[str, ...] = (),
        unsubscribed: tuple[str, ...] = (),
    ) -> list[Send | Emit]:
        """A neighbour or client changes its ledger."""
        self.stamps[src] += 1
        return self.hear(
            src,
            Change(
                7,
                self.stamps[src],
                tuple(line for line in lines if isinstance(line, AdvertisementLine)),
                unadvertised,
                tuple(line for line in lines if isinstance(line, SubscriptionLine)),
                unsubscribed,
            ),
        )

    def call(self, command: str, *args: object, **options: object) -> list[Send | Emit]:
        """The application asks."""
        getattr(self.content, command)(*args, self.now, **options)
        return self.done()


def greeting(role: str = "broker", **changed: object) -> Greeting:
    """A neighbour whose ledger has the number 7 and nothing in it."""
    fields = {"lease": 100.0, "series": 7, "stamp": 1, "digest": packed(0), "hears": True}
    fields |= changed
    return Greeting(role, **fields)  # type: ignore[arg-type]


def ad(
    id: str, text: str, *path: NodeId, epoch: int = 1, whole: bool = False, model: str = ""
) -> AdvertisementLine:
    """A line about an advertisement."""
    wire = Constraint.parse(text).wire()
    return AdvertisementLine(id, epoch, wire, model, whole, b"", path)


def sub(id: str, text: str, *path: NodeId, model: str = "") -> SubscriptionLine:
    """A line about a subscription."""
    return SubscriptionLine(id, Constraint.parse(text).wire(), model, path)


def changes(done: list[Send | Emit]) -> dict[NodeId, list[str]]:
    """Whom it told what: `+id` and `-id` of advertisements, `?id` and `!id` of subscriptions."""
    found: dict[NodeId, list[str]] = {}
    for effect in done:
        if isinstance(effect, Send) and isinstance(effect.msg, Change):
            said = found.setdefault(effect.to, [])
            said += [f"+{line.id}" for line in effect.msg.advertisements]
            said += [f"-{entry}" for entry in effect.msg.unadvertised]
            said += [f"?{line.id}" for line in effect.msg.subscriptions]
            said += [f"!{entry}" for entry in effect.msg.unsubscribed]
    return found


def events(done: list[Send | Emit]) -> list[Event]:
    """What it emitted."""
    return [effect.event for effect in done if isinstance(effect, Emit)]


def sends(done: list[Send | Emit], kind: type[Message]) -> list[tuple[NodeId, Message]]:
    """What it sent of one kind."""
    return [(one.to, one.msg) for one in done if isinstance(one, Send) and type(one.msg) is kind]
