"""Cutting a view into messages of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from protocols.membership.attributes import Attribute
from protocols.membership.config import MembershipSettings
from protocols.membership.records import Record
from protocols.membership.table import MemberTable

PIECE_ATTRIBUTES = 1024  # a member has at most as many
PIECE_BYTES = 65_536  # a member's attributes are at most as large


def cut(
    table: MemberTable, records: Iterable[Record], settings: MembershipSettings
) -> Iterator[tuple[tuple[Record, ...], tuple[Attribute, ...]]]:
    """Members with all their attributes, piece by piece; a member is never torn apart."""
    news: list[Record] = []
    attributes: list[Attribute] = []
    size = 0
    for record in records:
        held = table.attribute_set(record.name)
        full = (
            len(news) >= settings.piece_members
            or len(attributes) + len(held) > PIECE_ATTRIBUTES
            or size + held.bytes > PIECE_BYTES
        )
        if full and news:
            yield tuple(news), tuple(attributes)
            news, attributes, size = [], [], 0
        news.append(record)
        if held:
            attributes.extend(held)
            size += held.bytes
    if news:
        yield tuple(news), tuple(attributes)
