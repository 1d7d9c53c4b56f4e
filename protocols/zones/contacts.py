"""Whom to ask for the management zone: remembered nodes, and how they travel as an attribute."""

from __future__ import annotations

from collections.abc import Iterable

from overlay.ids import NodeId, key_of
from protocols.membership.interface import MembershipView
from protocols.zones.interface import MAX_ENDPOINTS, SUPERVISOR
from protocols.zones.messages import MAX_CONTACTS, Contact
from protocols.zones.naming import is_node_name

CONTACTS = "management"
"""The attribute in a base zone by which delegates tell whom they know in the management zone."""
ZONE = "zone"
"""The attribute in the management zone that tells which zone a delegate stands for."""

REMEMBERED = 64  # contacts
ENDPOINT_CHARACTERS = 256
ATTRIBUTE_BYTES = 1000  # a value may have 1,024


def pack(contacts: Iterable[Contact]) -> str:
    """Contacts as text: a line for each, its name and its endpoints; as many as fit."""
    lines: list[str] = []
    room = ATTRIBUTE_BYTES
    for contact in contacts:
        line = " ".join((contact.name, *contact.endpoints[:MAX_ENDPOINTS]))
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def unpack(text: str) -> list[Contact]:
    """Read what `pack` wrote; lines that it cannot have written are left out."""
    found = []
    for line in text.split("\n")[:MAX_CONTACTS]:
        name, *endpoints = line.split(" ")
        if is_node_name(name) and all(0 < len(one) <= ENDPOINT_CHARACTERS for one in endpoints):
            found.append(Contact(name, tuple(endpoints[:MAX_ENDPOINTS])))
    return found


def choose(view: MembershipView, zone: str, count: int) -> list[Contact]:
    """Members of the management zone that a zone should know; the same ones while they live.

    A supervisor first, then one of each of several zones: no crash of a zone ends them all.
    Clockwise from the zone's place, so that every zone knows others.
    """
    ring = view.ring()
    if not len(ring):
        return []
    start = ring.responsible_for(key_of(zone))
    names = [start, *ring.successors(start, len(ring) - 1)]
    home = {name: view.attributes(name).get(ZONE) for name in names if name != view.me}
    supervisors = [name for name in home if SUPERVISOR in view.roles(name)]
    others = [name for name in home if home[name] != zone and name not in supervisors]
    firsts = list({home[name]: name for name in reversed(others)}.values())[::-1]
    seconds = [name for name in others if name not in firsts]
    chosen = [*supervisors[:2], *firsts, *seconds, *supervisors[2:]][:count]
    return [contact_of(view, name) for name in chosen]


def contact_of(view: MembershipView, name: NodeId) -> Contact:
    """A member, and where it is."""
    record = view.record(name)
    return Contact(name, record.endpoints[:MAX_ENDPOINTS] if record is not None else ())


class ContactBook:
    """Nodes that may know the management zone, the latest last; bounded."""

    __slots__ = ("_endpoints", "_texts", "dropped")

    def __init__(self, names: Iterable[NodeId]) -> None:
        self._endpoints: dict[NodeId, tuple[str, ...]] = {}
        self._texts: dict[NodeId, str] = {}  # what delegates published, as it came: it is shared
        self.dropped = 0
        for name in names:
            self.learn(Contact(name))

    def learn(self, contact: Contact) -> None:
        """Remember one; a newer address replaces an older one."""
        known = self._endpoints.pop(contact.name, ())
        self._endpoints[contact.name] = contact.endpoints or known
        if len(self._endpoints) > REMEMBERED:
            del self._endpoints[next(iter(self._endpoints))]
            self.dropped += 1

    def published(self, delegate: NodeId, text: str) -> None:
        """A delegate of this zone tells whom it knows; it is read only when needed."""
        self._texts.pop(delegate, None)
        self._texts[delegate] = text
        if len(self._texts) > MAX_CONTACTS:
            del self._texts[next(iter(self._texts))]

    def read(self) -> None:
        """Take up what delegates published."""
        for text in self._texts.values():
            for contact in unpack(text):
                self.learn(contact)
        self._texts.clear()

    def names(self) -> list[NodeId]:
        """Everybody, the latest last."""
        return list(self._endpoints)

    def endpoints(self, name: NodeId) -> tuple[str, ...]:
        """Where that node was said to be."""
        return self._endpoints.get(name, ())

    def latest(self, count: int) -> tuple[Contact, ...]:
        """Those heard of last, the latest first."""
        self.read()
        return tuple(Contact(name, self._endpoints[name]) for name in self.names()[::-1][:count])
