"""Attributes of members: small named values, written by their owner only, versioned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeAlias

import msgspec

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId, WireName
from protocols.membership.config import MembershipSettings
from protocols.membership.records import fingerprint

KEY_CHARACTERS = 64
VERSIONS_PER_LIFE_BITS = 20
MAX_VERSION = (1 << 63) - 1

# Not bytes: MessagePack's text and bytes are one kind to msgspec's unions, and an open type would
# cost every frame of the node a closer look.
Value: TypeAlias = str | int | float | bool
Key: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=KEY_CHARACTERS)]

ROLES = "roles"
"""The attribute that lists what a member serves as (delegate, dht, broker, …), comma-separated."""


class Attribute(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One version of one attribute; without a value it was removed."""

    member: WireName
    key: Key
    version: Annotated[int, msgspec.Meta(ge=0, le=MAX_VERSION)]
    value: Value | None = None

    @property
    def size(self) -> int:
        """What it counts against the limit of its owner."""
        return len(self.key.encode()) + size_of(self.value)

    @property
    def cost(self) -> int:
        """About how many bytes it takes in a packet."""
        return 14 + len(self.member) + self.size


def size_of(value: Value | None) -> int:
    """How many bytes a value takes."""
    if isinstance(value, str):
        return len(value.encode())
    return 0 if value is None else 9


def first_version(born: int) -> int:
    """Versions of a life begin above all of an earlier one: they carry its first incarnation."""
    return born << VERSIONS_PER_LIFE_BITS


def life_of(version: int) -> int:
    """The incarnation that a life must have begun at to write that version."""
    return version >> VERSIONS_PER_LIFE_BITS


def check_attribute(key: str, value: Value, settings: MembershipSettings) -> None:
    """Say why the owner may not set this, or return."""
    if not 0 < len(key) <= KEY_CHARACTERS or not key.isprintable():
        raise LocalProtocolError(
            f"attribute {key[:KEY_CHARACTERS]!a}: use 1 to {KEY_CHARACTERS} printable characters"
        )
    if not isinstance(value, str | int | float):
        raise LocalProtocolError(
            f"attribute {key!a}: {type(value).__name__} is neither text nor a number"
        )
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise LocalProtocolError(f"attribute {key!a}: {value} needs more than 64 bits: send text")
    try:
        size = size_of(value)
    except UnicodeEncodeError:
        raise LocalProtocolError(f"attribute {key!a}: its text is not valid Unicode") from None
    if size > settings.value_bytes:
        raise LocalProtocolError(
            f"attribute {key!a} has {size} bytes: at most {settings.value_bytes} are allowed"
        )


class AttributeSet:
    """The attributes of one member, as far as they are known here."""

    __slots__ = ("_held", "bytes", "digest")

    def __init__(self) -> None:
        self._held: dict[str, Attribute] = {}
        self.bytes = 0
        self.digest = 0  # XOR of (member, key, version): part of the digest of the view

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self._held.values())

    def get(self, key: str) -> Attribute | None:
        """What is held under that key, removed or not."""
        return self._held.get(key)

    def is_news(self, update: Attribute) -> bool:
        """Whether its version is newer than what is held."""
        held = self._held.get(update.key)
        return held is None or update.version > held.version

    def excess(self, update: Attribute, settings: MembershipSettings) -> str:
        """Which limit it would break; empty when it fits."""
        held = self._held.get(update.key)
        if held is None and len(self._held) >= settings.max_keys:
            return f"{settings.max_keys} keys, removed ones included: reuse a key"
        if self.bytes - (held.size if held else 0) + update.size > settings.member_bytes:
            return f"{settings.member_bytes} bytes of all keys and values"
        return ""

    def put(self, update: Attribute) -> None:
        """Take a newer version."""
        held = self._held.get(update.key)
        if held is not None:
            self.bytes -= held.size
            self.digest ^= fingerprint(held.member, held.key, held.version)
        self._held[update.key] = update
        self.bytes += update.size
        self.digest ^= fingerprint(update.member, update.key, update.version)

    def values(self) -> dict[str, Value]:
        """Keys and values, in the order in which keys first appeared here."""
        return {
            attribute.key: attribute.value
            for attribute in self._held.values()
            if attribute.value is not None
        }


NO_ATTRIBUTES = AttributeSet()  # shared by all members without any: never written


def by_owner(updates: tuple[Attribute, ...]) -> dict[NodeId, list[Attribute]]:
    """Group updates by their owner, in order."""
    grouped: dict[NodeId, list[Attribute]] = {}
    for update in updates:
        grouped.setdefault(update.member, []).append(update)
    return grouped
