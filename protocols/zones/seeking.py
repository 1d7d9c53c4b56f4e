"""Finding the management zone, and parts of it that are cut off from each other."""

from __future__ import annotations

from collections.abc import Mapping

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import ContactLearned, PeerMet
from protocols.zones.contacts import ContactBook, choose, contact_of, pack, unpack
from protocols.zones.core import Core
from protocols.zones.directory import Directory
from protocols.zones.interface import MAX_ENDPOINTS
from protocols.zones.messages import MAX_CONTACTS, UNASKED, Contact, Contacts, ContactsRequest
from protocols.zones.naming import is_node_name
from protocols.zones.office import Office

SEEK = "seek"
STORED = b"contacts"
MAX_ASKED = 64  # requests whose answer may still come


class Seeker:
    """While this node is in the management zone it looks for members that it does not know.

    It never sends a Join to who may be no member: it asks first, and any node answers.
    """

    def __init__(self, core: Core, office: Office, directory: Directory, book: ContactBook) -> None:
        self._core = core
        self._office = office
        self._directory = directory
        self._book = book
        self._asked: dict[int, tuple[NodeId, bool]] = {}  # whom, and whether on hearsay
        self._pause = core.settings.seek_retry
        self._stored = b""

    def recall(self, kept: Mapping[bytes, bytes]) -> None:
        """Remember whom an earlier life knew."""
        text = kept.get(STORED, b"")[:4096].decode(errors="replace")
        for contact in unpack(text) if text else ():
            self._book.learn(contact)

    def remember(self, contacts: list[Contact]) -> None:
        """Keep contacts for a next life."""
        packed = pack(contacts).encode()
        if packed and packed != self._stored:
            self._stored = packed
            self._core.effects.store(STORED, packed, STORED)

    # -- asking ---------------------------------------------------------------------------------

    def entered(self, now: float) -> None:
        """This node's membership of the management zone began, so far alone."""
        self._pause = self._core.settings.seek_retry
        self._seek(now)

    def left(self) -> None:
        """It ended."""
        self._core.timers.cancel(SEEK)
        self._asked.clear()

    def met(self, met: PeerMet, now: float) -> None:
        """An address that the user gave answered: whoever lives there may know more."""
        self._book.learn(Contact(met.peer, met.endpoints[:MAX_ENDPOINTS]))
        self._look_sooner(now)

    def on_alarm(self, now: float) -> None:
        """Ask again."""
        self._seek(now)

    def _seek(self, now: float) -> None:
        core = self._core
        assert core.management is not None
        self._book.read()
        view = core.management.view
        alone = len(view) == 1
        fellows = [name for name in self._office.delegates if name not in view]
        fellows = fellows[: core.settings.seek_parallel]
        others = [name for name in self._book.names() if name not in view and name != core.me]
        more = core.settings.seek_parallel - len(fellows)
        for name in fellows + core.rng.sample(others, min(len(others), more)):
            self._ask(name)
        if alone:
            pause = self._pause
            self._pause = min(2 * self._pause, core.settings.seek_period)
        else:
            pause = self._pause = core.settings.seek_period
        core.timers.set(SEEK, now + pause * (0.75 + core.rng.random() / 2))

    def _ask(self, name: NodeId, *, hearsay: bool = False) -> None:
        core = self._core
        endpoints = self._book.endpoints(name)
        if endpoints and not core.is_fellow(name):
            core.effects.emit(ContactLearned(name, endpoints))
        request = core.next_id()
        self._asked[request] = (name, hearsay)
        if len(self._asked) > MAX_ASKED:
            del self._asked[next(iter(self._asked))]
        core.counts.sought += 1
        core.effects.send(name, ContactsRequest(request))

    def _look_sooner(self, now: float) -> None:
        core = self._core
        if core.management is not None and len(core.management.view) == 1:
            core.timers.hasten(SEEK, now + core.settings.seek_retry)

    # -- answers --------------------------------------------------------------------------------

    def on_request(self, src: NodeId, request: ContactsRequest, now: float) -> None:
        """Say whether this node is in the management zone, and whom it knows there."""
        core = self._core
        if request.id == UNASKED:
            raise RemoteProtocolError("zones-bad-id", f"from {src}")
        core.effects.send(src, self.answer(request.id))

    def answer(self, request: int) -> Contacts:
        """What this node knows of the management zone."""
        core = self._core
        if core.management is not None:
            known = choose(core.management.view, core.zone, core.settings.contacts)
            return Contacts(request, True, tuple(known))
        mine = []
        if core.base is not None:
            mine = [contact_of(core.base.view, name) for name in self._office.delegates]
        names = [contact.name for contact in mine]
        rest = [one for one in self._book.latest(MAX_CONTACTS) if one.name not in names]
        return Contacts(request, False, tuple([*mine, *rest][:MAX_CONTACTS]))

    def on_contacts(self, src: NodeId, contacts: Contacts, now: float) -> None:
        """Join whoever says to be a member; ask the others that it names."""
        core = self._core
        asked, hearsay = self._asked.pop(contacts.id, ("", True))
        if contacts.id != UNASKED and asked != src:
            core.counts.late += 1
            return
        if not all(is_node_name(one.name) for one in contacts.contacts):
            raise RemoteProtocolError("zones-bad-name", f"a contact that {src} names")
        if not asked and not self._is_supervised_by(src):
            core.counts.strangers += 1
            return
        known = self._book.names()
        before = self._book.dropped
        for contact in contacts.contacts:
            if contact.name != core.me:
                self._book.learn(contact)
        core.counts.contacts_dropped += self._book.dropped - before
        if core.management is None:
            return
        view = core.management.view
        if asked and contacts.inside:
            if src not in view:
                core.management.join((src,), now)
        elif not asked:  # a supervisor calls: it must say itself that it is inside
            if src not in view:
                self._ask(src)
        elif not hearsay:  # once only, or two nodes that name each other would be asked for ever
            named = [one.name for one in contacts.contacts if one.name not in view]
            new = [name for name in named if name != core.me and name not in known]
            old = [name for name in named if name != core.me and name in known]
            for name in (new + old)[: core.settings.seek_parallel]:
                self._ask(name, hearsay=True)

    def _is_supervised_by(self, name: NodeId) -> bool:
        entry = self._directory.entry(self._core.zone)
        return entry is not None and name in entry.supervisors
