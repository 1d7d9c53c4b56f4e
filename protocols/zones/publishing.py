"""What a delegate publishes: its zone to the management zone, contacts there to its own zone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from overlay.protocol import Scope
from protocols.membership.interface import ROLES, MembershipView
from protocols.zones.contacts import CONTACTS, ZONE, choose, pack
from protocols.zones.core import Core
from protocols.zones.directory import SIZE, SUMMARY
from protocols.zones.interface import DELEGATE, SUMMARY_CHARACTERS, SUPERVISOR
from protocols.zones.seeking import Seeker

PUBLISH = "publish"


def summary_of(view: MembershipView) -> str:
    """How many members serve as what, as far as it fits: "broker:2,dht:9"."""
    roles = Counter(role for name in view.ring() for role in view.roles(name))
    words: list[str] = []
    room = SUMMARY_CHARACTERS
    for role in sorted(roles):
        word = f"{role}:{roles[role]}"
        room -= len(word) + 1
        if room < 0:
            break
        words.append(word)
    return ",".join(words)


def presentation(zone: Scope, base: MembershipView | None) -> Mapping[str, str | int]:
    """The attributes with which a node enters the management zone."""
    if base is None:
        return {ROLES: SUPERVISOR}
    return {ROLES: DELEGATE, ZONE: zone, SIZE: len(base), SUMMARY: summary_of(base)}


class Publisher:
    """Follows both views, with a pause between two changes."""

    def __init__(self, core: Core, seeker: Seeker) -> None:
        self._core = core
        self._seeker = seeker
        self._base_version = -1
        self._management_version = -1

    def soon(self, now: float) -> None:
        """Something changed that others should know."""
        core = self._core
        if core.management is not None and PUBLISH not in core.timers:
            core.timers.set(PUBLISH, now + core.settings.publish_pause)

    def entered(self, now: float) -> None:
        """This node is in the management zone."""
        self._base_version = self._management_version = -1
        self.publish(now)

    def left(self, now: float) -> None:
        """It is no more: others tell the contacts."""
        core = self._core
        core.timers.cancel(PUBLISH)
        if core.base is not None and not core.base.stopped:
            mine = core.base.view.attributes(core.me)
            if CONTACTS in mine:
                core.base.remove_attribute(CONTACTS, now)

    def publish(self, now: float) -> None:
        """Set the attributes whose values are others now."""
        core = self._core
        if core.management is None or core.management.stopped:
            return
        view = core.management.view
        contacts = None
        if view.version != self._management_version:
            self._management_version = view.version
            contacts = choose(view, core.zone, core.settings.contacts)
            self._seeker.remember(contacts)
        if core.base is None or core.base.stopped:
            return
        if core.base.view.version != self._base_version:
            core.write(core.management, SIZE, len(core.base.view), now)
            core.write(core.management, SUMMARY, summary_of(core.base.view), now)
            self._base_version = core.base.view.version
        if contacts:  # who is alone there keeps telling whom it knew before
            core.write(core.base, CONTACTS, pack(contacts), now)
