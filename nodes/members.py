"""What an application sees of its zone: the members, and its own attributes to write."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from overlay.ids import NodeId, Vid
from protocols.membership import Membership
from protocols.membership.attributes import Value
from protocols.membership.interface import MembershipView

Call: TypeAlias = Callable[..., Any]
"""Runs a command of a protocol: `Node.call`."""


class Member(msgspec.Struct, frozen=True):
    """One member of a zone as this node knows it now."""

    name: NodeId
    vid: Vid  # its place on the ring
    endpoints: tuple[str, ...]
    state: str  # "alive" or "suspect"
    incarnation: int
    attributes: Mapping[str, Value]


class Members(Mapping[NodeId, Member]):
    """All who are present, this node included, clockwise on the ring; always up to date."""

    def __init__(self, view: MembershipView) -> None:
        self._view = view

    def __getitem__(self, name: NodeId) -> Member:
        record = self._view.record(name)
        if record is None or not record.present:
            raise KeyError(name)
        return Member(
            name=name,
            vid=record.vid,
            endpoints=record.endpoints,
            state=record.state.name.lower(),
            incarnation=record.incarnation,
            attributes=self._view.attributes(name),
        )

    def __contains__(self, name: object) -> bool:
        return name in self._view

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._view.members())

    def __len__(self) -> int:
        return len(self._view)

    def __repr__(self) -> str:
        return f"<{len(self)} members of {self._view.zone!r}: {', '.join(self)}>"


class Attributes(MutableMapping[str, Value]):
    """This node's own attributes; all members of the zone see what is set here.

    LocalProtocolError says what is allowed when a key or a value is not.
    """

    def __init__(self, membership: Membership, call: Call, said: dict[str, Value]) -> None:
        self._membership = membership
        self._call = call
        self._said = said  # by the application, not by protocols: it goes along with a move

    def _mine(self) -> Mapping[str, Value]:
        return self._membership.view.attributes(self._membership.me)

    def __getitem__(self, key: str) -> Value:
        return self._mine()[key]

    def __setitem__(self, key: str, value: Value) -> None:
        self._call(self._membership.set_attribute, key, value)
        self._said[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self._mine():
            raise KeyError(key)
        self._call(self._membership.remove_attribute, key)
        self._said.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._mine())

    def __len__(self) -> int:
        return len(self._mine())

    def __repr__(self) -> str:
        return repr(self._mine())
