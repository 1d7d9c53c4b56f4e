"""How a broker keeps its advertisement alive at BDNs: until acknowledged, then by its lease."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import Effects, UdpAddress
from protocols.discovery.config import BrokerSettings, parse_address
from protocols.discovery.credentials import prove
from protocols.discovery.events import AdvertisementChanged
from protocols.discovery.interface import Clock
from protocols.discovery.messages import MOST_LINKS, Advertisement, AdvertisementAck

ADVERTISE = "advertise"
SETTLE = 0.05  # s that a change waits for others: brokers link to several at once
MOST_RETRY = 5.0  # s between tries at a BDN that does not acknowledge
MOST_SEQUENCE = 1 << 62


class Desk(msgspec.Struct):
    """One BDN that this broker advertises to."""

    address: UdpAddress
    due: float
    pause: float  # until the next try, while nothing is acknowledged
    sent: int = -1  # the sequence number last sent
    expires: float | None = None  # of a BDN that announced itself


class Advertiser:
    """The advertisement of one broker, and where it stands."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: BrokerSettings,
        here: Callable[[], tuple[str, ...]],
        clock: Clock,
        neighbours: Callable[[], list[NodeId]],
    ) -> None:
        self._me = me
        self._effects = effects
        self._rng = rng
        self._config = config
        self._here = here
        self._clock = clock
        self._neighbours = neighbours
        self._sequence = 0
        self._published = -1.0  # when the topic is due
        self._desks: dict[UdpAddress, Desk] = {}

    def start(self, now: float) -> None:
        """Advertise to all BDNs of the configuration, and on the topic."""
        for text in self._config.bdns:
            self._add(parse_address(text), now)
        self.changed(now)

    def _add(self, address: UdpAddress, now: float) -> Desk:
        desk = self._desks[address] = Desk(address, now, self._config.advertise_retry)
        return desk

    def learn_bdn(self, address: UdpAddress, lease: float, now: float) -> None:
        """A BDN announced itself (§2.4): advertise there, too, for as long as it says so."""
        desk = self._desks.get(address)
        if desk is None:
            learned = sum(one.expires is not None for one in self._desks.values())
            if learned >= self._config.learned_bdns or lease <= 0:
                return
            desk = self._add(address, now)
            desk.expires = now + lease
            self._arm(now)
        elif desk.expires is not None:
            desk.expires = now + lease

    def changed(self, now: float) -> None:
        """What the advertisement says has changed: tell everybody soon."""
        self._sequence = max(self._sequence + 1, int(max(0.0, self._clock(now).time) * 1000))
        self._published = now + SETTLE
        for desk in self._desks.values():
            desk.due = min(desk.due, now + SETTLE)
            desk.pause = self._config.advertise_retry
        self._arm(now)

    def advertisement(self, now: float, lease: float | None = None) -> Advertisement:
        """As of now."""
        config = self._config
        sequence = min(self._sequence, MOST_SEQUENCE)
        return Advertisement(
            self._me,
            sequence,
            config.lease if lease is None else lease,
            endpoints=self._here()[:4],
            logical=config.logical,
            region=config.region,
            institution=config.institution,
            realm=config.realm,
            links=tuple(self._neighbours()[:MOST_LINKS]),
            proof=prove(config.credential, sequence.to_bytes(8), self._me),
        )

    def advertise_due(self, now: float) -> None:
        """Send where it is time."""
        advertisement = self.advertisement(now)
        for desk in list(self._desks.values()):
            if desk.expires is not None and desk.expires <= now:
                del self._desks[desk.address]
            elif desk.due <= now:
                self._effects.cast(desk.address, advertisement)
                desk.sent = advertisement.sequence
                desk.due = now + desk.pause * self._rng.uniform(0.8, 1.2)
                desk.pause = min(2 * desk.pause, MOST_RETRY, self._config.lease / 3)
        if self._published <= now:
            self._effects.emit(AdvertisementChanged(advertisement))
            self._published = now + self._config.lease / 3
        self._arm(now)

    def acknowledged(self, sender: UdpAddress, msg: AdvertisementAck, now: float) -> bool:
        """A BDN answered; False when it was not asked, or about an earlier one."""
        desk = self._desks.get(sender)
        if desk is None or msg.sequence != desk.sent or msg.sequence != self._sequence:
            return False
        # One who does not want us may change its mind, but need not be asked often.
        pause = self._config.lease / 3 if msg.status == "stored" else self._config.lease
        desk.pause = self._config.advertise_retry
        desk.due = now + pause * self._rng.uniform(0.8, 1.0)
        self._arm(now)
        return True

    def withdraw(self, now: float) -> None:
        """Tell all BDNs that this broker goes."""
        self._sequence += 1
        for desk in self._desks.values():
            self._effects.cast(desk.address, self.advertisement(now, lease=0.0))

    def _arm(self, now: float) -> None:
        due = [desk.due for desk in self._desks.values()]
        self._effects.set_timer(ADVERTISE, max(now, min((*due, self._published))))

    def check_invariants(self) -> None:
        """No more desks than the settings allow."""
        if len(self._desks) > len(self._config.bdns) + self._config.learned_bdns:
            raise InvariantViolation(f"{self._me}: advertises to {len(self._desks)} BDNs")
