"""Who may tell what: the edge where ledgers of others come in."""

from __future__ import annotations

from collections.abc import Sequence

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId, check_name
from protocols.gateways.core import Core
from protocols.gateways.ledger import ABOUT_OTHERS, Book
from protocols.gateways.messages import Line, Party
from protocols.gateways.names import is_topic
from protocols.zones.interface import is_zone_name

ZONE = "zone"  # the attribute in the management zone that tells for which zone a delegate stands

FROM_FELLOWS = (Book.DECLARATIONS, Book.REGISTRATIONS, Book.PROSPECTS)
FROM_MANAGERS = (Book.INTERESTS, Book.REPLICAS, Book.EXISTING)


def book_of(src: NodeId, number: int) -> Book:
    """The book with that number."""
    try:
        return Book(number)
    except ValueError:
        raise RemoteProtocolError("gateways-no-such-book", f"{number} from {src}") from None


def check_lines(src: NodeId, number: int, lines: Sequence[Line], parties: Sequence[Party]) -> Book:
    """See that lines are what lines of that book may be; a bad one spoils the message."""
    book = book_of(src, number)
    named = book in ABOUT_OTHERS
    for line in lines:
        if not is_topic(line.topic):
            raise RemoteProtocolError("gateways-bad-topic", f"{line.topic[:64]!a} from {src}")
        if (line.party >= 0) != named or line.party >= len(parties):
            raise RemoteProtocolError("gateways-bad-party", f"{line.party} from {src}")
    for party in parties:
        if not _is_name(party.gateway) or not is_zone_name(party.zone):
            raise RemoteProtocolError("gateways-bad-name", f"a party that {src} names")
    return book


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except LocalProtocolError:
        return False
    return True


def is_entitled(core: Core, src: NodeId, book: Book, parties: Sequence[Party]) -> bool:
    """Whether it is that node's to tell, as far as this node knows.

    A newcomer may be refused until this node knows it; its next digest puts that right.
    """
    if book in FROM_FELLOWS:
        return core.base is not None and src in core.base
    if book in FROM_MANAGERS:
        management = core.zones.management
        if management is None or src not in management.view or not core.manages:
            return False
        if book is Book.INTERESTS:
            zone = management.view.attributes(src).get(ZONE)
            return all(party.zone == zone for party in parties)
        return book is not Book.EXISTING or core.base is not None
    return core.base is not None  # a roster: whoever sends it, it can only add gateways
