"""What chaos does in every machine: messages arrive in any order, twice or not at all."""

from __future__ import annotations

from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from hypothesis.strategies import DataObject, booleans, data, floats, integers

from tests.property.network import Network


class Chaos(RuleBasedStateMachine):
    """A network, and the rules that need to know nothing of what runs in it."""

    network: Network

    @precondition(lambda self: self.network.under_way)
    @rule(choices=data(), copies=booleans())
    def deliver(self, choices: DataObject, copies: bool) -> None:
        last = len(self.network.under_way) - 1
        self.network.deliver(choices.draw(integers(0, last)), keep=copies)

    @precondition(lambda self: self.network.under_way)
    @rule(choices=data())
    def lose(self, choices: DataObject) -> None:
        del self.network.under_way[choices.draw(integers(0, len(self.network.under_way) - 1))]

    @rule(seconds=floats(0.0, 2.0))
    def time_passes(self, seconds: float) -> None:
        self.network.pass_time(seconds)
