"""The attribute service: my own attributes, which I alone write, and those of all others."""

from __future__ import annotations

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from protocols.membership.attributes import (
    Attribute,
    AttributeSet,
    Value,
    check_attribute,
    first_version,
    life_of,
    size_of,
)
from protocols.membership.config import MembershipSettings
from protocols.membership.horizon import Horizon
from protocols.membership.table import MemberTable


class Sharing:
    """Writes attributes into the view, and returns what must be passed on."""

    def __init__(self, table: MemberTable, horizon: Horizon, settings: MembershipSettings) -> None:
        self._table = table
        self._horizon = horizon
        self._settings = settings
        self._version = 0  # of my newest attribute

    # -- my own ---------------------------------------------------------------------------------

    def begin(self, born: int) -> list[Attribute]:
        """A life begins there: what I had set is published anew, above all earlier versions."""
        self._version = max(self._version, first_version(born))
        return [self._write(held.key, held.value) for held in tuple(self._mine())]

    def set(self, key: str, value: Value) -> Attribute | None:
        """Set one of mine; None when it has that value already."""
        check_attribute(key, value, self._settings)
        held = self._mine().get(key)
        if held is not None and held.value == value and type(held.value) is type(value):
            return None
        excess = self._mine().excess(Attribute(self._table.me, key, 0, value), self._settings)
        if excess:
            raise LocalProtocolError(f"attribute {key!a}: a member may have at most {excess}")
        return self._write(key, value)

    def remove(self, key: str) -> Attribute:
        """Remove one of mine; its version stays, or old news could bring it back."""
        held = self._mine().get(key)
        if held is None or held.value is None:
            raise LocalProtocolError(f"attribute {key[:64]!a} is not set: nothing to remove")
        return self._write(key, None)

    def _mine(self) -> AttributeSet:
        return self._table.attribute_set(self._table.me)

    def _write(self, key: str, value: Value | None) -> Attribute:
        self._version += 1
        attribute = Attribute(self._table.me, key, self._version, value)
        self._table.put_attribute(attribute)
        return attribute

    # -- what others say ------------------------------------------------------------------------

    def take(self, member: NodeId, updates: list[Attribute]) -> tuple[list[Attribute], str]:
        """Apply what is newer; returns what to pass on, and why something was refused, or ""."""
        record = self._table.record(member)
        if record is None:
            return [], ""  # its record was missed: a reconciliation will bring both
        taken: list[Attribute] = []
        refusal = ""
        for update in updates:
            held = self._table.attribute_set(member)
            if update.version < first_version(record.born) or not held.is_news(update):
                continue
            objection = self._objection(update, held)
            if objection:
                refusal = objection
            elif member == self._table.me:
                taken += self._overrule(update, held)
            else:
                self._table.put_attribute(update)
                taken.append(update)
        return taken, refusal

    def _objection(self, update: Attribute, held: AttributeSet) -> str:
        if not update.key or not update.key.isprintable():
            return "bad-attribute-key"
        if life_of(update.version) > self._horizon.limit:
            return "far-future-version"
        if size_of(update.value) > self._settings.value_bytes or held.excess(
            update, self._settings
        ):
            return "attribute-too-large"
        return ""

    def _overrule(self, update: Attribute, held: AttributeSet) -> list[Attribute]:
        """Somebody wrote what is mine to write: say what is true in a version above it."""
        self._version = max(self._version, update.version)
        mine = held.get(update.key)
        return [self._write(update.key, None if mine is None else mine.value)]
