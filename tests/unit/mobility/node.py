"""One node that moves, or whose clients do: the real routing beneath, and what both do."""

from __future__ import annotations

from random import Random

from overlay.protocol import Event
from protocols.content import ContentSettings
from protocols.mobility import Mobility, MobilitySettings
from tests.recording import Emit, Send, TickEnd
from tests.unit.content.node import BROKER, Node

__all__ = ["BROKER", "MobileNode"]


class MobileNode(Node):
    """A broker, or a client; events of the routing reach the mobility beside it."""

    def __init__(
        self,
        settings: ContentSettings = BROKER,
        moving: MobilitySettings | None = None,
        me: str = "me",
    ) -> None:
        super().__init__(settings, me)
        self.mobility = Mobility(
            me, self.effects, Random(2), moving or MobilitySettings(), content=self.content
        )
        self.handlers = {**self.handlers, **self.mobility.message_handlers()}

    def done(self) -> list[Send | Emit]:
        """What both did, timers aside, to the end of the tick."""
        found: list[Send | Emit] = []
        handlers = self.mobility.event_handlers() if hasattr(self, "mobility") else {}
        while recorded := self.effects.drain():
            for effect in recorded:
                if isinstance(effect, TickEnd):
                    effect.callback(self.now)
                elif isinstance(effect, Send | Emit):
                    found.append(effect)
                    if isinstance(effect, Emit) and type(effect.event) in handlers:
                        handlers[type(effect.event)](effect.event, self.now)
        self.content.check_invariants()
        self.content.router.audit()
        return found

    def wait(self, seconds: float) -> list[Send | Emit]:
        """Timers of the mobility come due."""
        end = self.now + seconds
        found: list[Send | Emit] = []
        while due := sorted(
            (at, str(key), key)
            for key, at in self.effects.timers.items()
            if at <= end and (key == "move" or (isinstance(key, tuple) and key[0] != "settle"))
        ):
            at, _, key = due[0]
            del self.effects.timers[key]
            self.now = max(self.now, at)
            self.mobility.on_timer(key, self.now)
            found += self.done()
        self.now = end
        return found

    def ask(self, command: str, *args: object) -> list[Send | Emit]:
        """The application asks the mobility."""
        getattr(self.mobility, command)(*args, self.now)
        return self.done()


def events_of(done: list[Send | Emit], kind: type[Event]) -> list[Event]:
    """What was emitted of one kind."""
    return [one.event for one in done if isinstance(one, Emit) and isinstance(one.event, kind)]
