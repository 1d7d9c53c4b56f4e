"""Whom a requester asks, and when it asks again: BDNs in turn, known brokers, multicast.

A BDN that is silent for `tries` attempts makes room for the next one. When none is left the last
target set and multicast are asked together, and from then on everybody is asked at each step.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.protocol import Effects, Origin, UdpAddress
from overlay.tracing import Trace, flow_number
from overlay.tracing.kinds import DISCOVERY_ASKED
from protocols.discovery.collecting import Asked, Round
from protocols.discovery.config import DiscoverySettings, parse_address, parse_group
from protocols.discovery.credentials import prove
from protocols.discovery.messages import MOST_ATTEMPTS, PADDED_TO, Request, RequestAck

MOST_CHALLENGES = 4  # cookies that one address may send us for one discovery
KNOWN_COOKIES = 64
SILENT = "silent"
encoded = msgspec.msgpack.Encoder().encode

Known = Mapping[NodeId, UdpAddress]


class CountsRequests(Protocol):
    """Where the datagrams sent are counted."""

    requests: int


class Asking:
    """Sends the requests of one requester."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        config: DiscoverySettings,
        counts: CountsRequests,
        here: Callable[[], tuple[str, ...]],
    ) -> None:
        self._me = me
        self._effects = effects
        self._config = config
        self._counts = counts
        self._here = here
        self._bdns = [parse_address(text) for text in config.bdns]
        self._group = parse_group(config.group)
        self._cookies: OrderedDict[UdpAddress, tuple[NodeId, bytes]] = OrderedDict()
        self._next_bdn = 0
        self._fell_back = False
        self._group_steps = 0

    def check(self, known: Known) -> None:
        """Somebody must be there to ask."""
        if not self._bdns and not known and self._config.multicast == "never":
            raise LocalProtocolError(
                "nobody to ask for a broker: name a BDN (discovery.bdns), or allow multicast"
            )

    def begin(self, round_: Round, known: Known, now: float) -> None:
        """Ask the first one."""
        self._next_bdn = 0
        self._fell_back = False
        self._group_steps = 0
        if self._config.multicast == "always":
            self._ask_group(round_)
        self._advance(round_, known)

    # -- sending ----------------------------------------------------------------------------------

    def _advance(self, round_: Round, known: Known) -> None:
        """Ask the next BDN, or when there is none everybody else."""
        round_.first_attempt = round_.attempt
        if self._next_bdn < len(self._bdns):
            address = self._bdns[self._next_bdn]
            self._next_bdn += 1
            what = f"bdn {address.host}:{address.port}"
            self._add(round_, Asked(address, what))
        elif not self._fell_back:
            self._fell_back = True
            for name, address in known.items():
                self._add(round_, Asked(address, f"known {name}", name))
            if self._config.multicast != "never":
                self._ask_group(round_)

    def _add(self, round_: Round, asked: Asked) -> None:
        if asked.address in round_.asked:
            return
        name, asked.cookie = self._cookies.get(asked.address, (asked.name, b""))
        asked.name = name
        round_.asked[asked.address] = asked
        round_.sources[asked.what] = None
        self._ask(round_, asked)

    def _trace(self, round_: Round, what: str, peer: str) -> None:
        if self._effects.tracing:
            self._effects.trace(
                Trace(
                    DISCOVERY_ASKED,
                    peer,
                    stream=flow_number(round_.id),
                    detail=what.partition(" ")[0],
                    value=float(round_.attempt + 1),
                )
            )

    def _ask(self, round_: Round, asked: Asked) -> None:
        asked.tries += 1
        self._counts.requests += 1
        request = self._request(round_, asked.cookie)
        self._trace(round_, asked.what, asked.name or f"{asked.address.host}:{asked.address.port}")
        self._effects.cast(asked.address, request, asked.name)

    def _ask_group(self, round_: Round) -> None:
        round_.by_group = True
        round_.sources["multicast"] = None
        self._counts.requests += 1
        self._trace(round_, "multicast", "")
        self._effects.cast(self._group, self._request(round_, b""))

    def _request(self, round_: Round, cookie: bytes) -> Request:
        config = self._config
        request = Request(
            round_.id,
            round_.attempt,
            endpoints=self._here()[:4],
            realm=config.realm,
            proof=prove(config.credential, round_.id, self._me),
            cookie=cookie,
            heard=round_.heard_digests(),
        )
        room = PADDED_TO - len(encoded(request))
        if room <= 0:
            return request
        return msgspec.structs.replace(request, padding=bytes(room))

    # -- answers ----------------------------------------------------------------------------------

    def answered(
        self, round_: Round, origin: Origin, ack: RequestAck, known: Known, now: float
    ) -> None:
        """Somebody took the request on, wants proof of our address, or refused."""
        round_.hear_time(origin.address, ack, origin.arrived_at)
        asked = round_.asked.get(origin.address)
        if asked is None:
            if ack.status != "prove" or not round_.by_group or not self._may_prove(round_):
                return
            what = f"via {origin.name}"
            asked = Asked(origin.address, what, origin.name, cookie=ack.cookie)
            self._keep_cookie(origin, ack.cookie)
            self._add(round_, asked)
            return
        asked.name = origin.name
        if asked.refused == SILENT:
            asked.refused = ""
        if ack.status == "accepted":
            round_.take_ack(asked, ack, now)
            if not round_.heard and not round_.unanswered and not self._anybody_to_come(round_):
                self._advance(round_, known)
        elif ack.status == "prove":
            if asked.challenges < MOST_CHALLENGES and ack.cookie != asked.cookie:
                asked.challenges += 1
                asked.cookie = ack.cookie
                asked.tries = 0
                self._keep_cookie(origin, ack.cookie)
                self._ask(round_, asked)
        else:
            asked.refused = ack.status
            if not round_.accepted and not round_.unanswered:
                self._advance(round_, known)

    def _may_prove(self, round_: Round) -> bool:
        proving = sum(one.what.startswith("via ") for one in round_.asked.values())
        return proving < self._config.proofs

    def _anybody_to_come(self, round_: Round) -> bool:
        return round_.by_group or any(one.total for one in round_.accepted)

    def _keep_cookie(self, origin: Origin, cookie: bytes) -> None:
        """The next discovery need not prove our address again."""
        self._cookies[origin.address] = (origin.name, cookie)
        self._cookies.move_to_end(origin.address)
        if len(self._cookies) > KNOWN_COOKIES:
            self._cookies.popitem(last=False)

    # -- time -------------------------------------------------------------------------------------

    def pause(self, round_: Round) -> float:
        """Until the next step."""
        config = self._config
        if round_.heard:
            if round_.by_group and not round_.missing:
                return config.group_step + round_.slowest
            return min(max(2 * round_.slowest, config.retry_least), config.retry)
        if round_.by_group and not round_.asked:
            pause = config.group_step * 2.0 ** min(self._group_steps, 16)
            return min(pause, config.retry)
        return config.retry

    def step(self, round_: Round, known: Known, now: float) -> bool:
        """Ask again whoever it may help to ask; False when it is time to be content."""
        config = self._config
        self._group_steps += 1
        if round_.take_news():
            round_.fruitless = 0
        elif self._did_arrive(round_):
            round_.fruitless += 1  # what was asked for, and it brought nothing
        before, by_group = dict(round_.asked), round_.by_group
        round_.next_attempt(MOST_ATTEMPTS, now)
        for one in round_.unanswered:
            if one.tries >= config.tries:
                one.refused = SILENT
        if round_.heard:
            done = round_.is_complete(config.max_responses)
            if done or round_.fruitless >= self._patience(round_):
                return False
        elif not round_.unanswered and (
            not round_.accepted or round_.fruitless >= config.fruitless
        ):
            self._advance(round_, known)
        for asked in before.values():  # whoever came since has just been asked
            if self._is_worth_asking(round_, asked):
                self._ask(round_, asked)
        if by_group:
            self._ask_group(round_)
        return True

    def _did_arrive(self, round_: Round) -> bool:
        """Whether somebody took the last attempt on, or nobody was asked to."""
        accepted = round_.accepted
        if round_.by_group and not round_.missing:
            return True
        return not accepted or any(one.accepted == round_.attempt for one in accepted)

    def _is_worth_asking(self, round_: Round, asked: Asked) -> bool:
        """Whom to ask again: not those who told us of brokers that have all answered.

        A silent one may have been unlucky: it is asked on while nobody else took us on.
        """
        if asked.refused not in ("", SILENT):
            return False
        if asked.refused == SILENT:
            return not round_.accepted and (self._fell_back or bool(round_.heard))
        return asked.accepted < 0 or round_.missing > 0 or not round_.heard

    def _patience(self, round_: Round) -> int:
        """Attempts without news that tell that nobody else will answer."""
        if round_.by_group and not (round_.missing or round_.lossy or round_.unanswered):
            return 1
        return self._config.fruitless * (2 if round_.lossy else 1)

    def why_nobody(self, round_: Round, known: Known) -> str:
        """One line for people."""
        seconds = f"within {self._config.timeout:g} s"
        refusals = [
            f"{one.what}: {one.refused}"
            for one in round_.asked.values()
            if one.refused not in ("", SILENT)
        ]
        taken = [one.what for one in round_.accepted]
        if taken:
            return f"no broker answered {seconds}, though {', '.join(taken)} passed the request on"
        tried = ", ".join(round_.sources) or "nobody"
        told = f" ({'; '.join(refusals)})" if refusals else ""
        return f"no broker answered {seconds}; asked {tried}{told}"
