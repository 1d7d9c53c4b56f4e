"""Constraints and items: a bad text is a PredicateError, a bad message a RemoteProtocolError.

What was read comes back from its readable form and from the wire as it was.
"""

from __future__ import annotations

from contextlib import suppress

import atheris

with atheris.instrument_imports(include=["overlay", "tests"]):
    import msgspec

    from overlay.errors import RemoteProtocolError
    from overlay.predicates import (
        Constraint,
        PredicateError,
        Value,
        WireConstraint,
        item_from_wire,
        matches,
    )
    from tests.fuzz.running import fuzz

CONSTRAINT = msgspec.msgpack.Decoder(WireConstraint)
ITEM = msgspec.msgpack.Decoder(dict[str, Value])
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError)
TEXTS = (
    'system = "Linux", memory >= 2, disk < 1.5e3, load != -1',
    "available > 8:00, until <= 2026-12-01, gpu present, spot = true",
    "name prefix 'a\\u0000\\U0010ffff', name != \"a\\\\b\"",
)


def read(data: bytes) -> None:
    """The input as a readable constraint, as one in a message, and as an item."""
    found: list[Constraint] = []
    with suppress(PredicateError, *UNDECODABLE):
        found.append(Constraint.parse(data.decode("utf-8", "surrogatepass")))
    with suppress(RemoteProtocolError, *UNDECODABLE):
        found.append(Constraint.from_wire(CONSTRAINT.decode(data)))
    for constraint in found:
        assert Constraint.parse(str(constraint)) == constraint
        sent = msgspec.msgpack.encode(constraint.wire())
        assert Constraint.from_wire(CONSTRAINT.decode(sent)) == constraint
    items = []
    with suppress(RemoteProtocolError, *UNDECODABLE):
        items.append(item_from_wire(ITEM.decode(data)))
    for item in items:
        assert matches(item, Constraint.exactly(item))


def seeds() -> list[bytes]:
    """Each form of some constraints, and an item."""
    read = [Constraint.parse(text) for text in TEXTS]
    wire = [msgspec.msgpack.encode(constraint.wire()) for constraint in read]
    item: dict[str, Value] = {"a": 1, "b": 1.5, "c": "text", "d": True}
    return [*(text.encode() for text in TEXTS), *wire, msgspec.msgpack.encode(item)]


if __name__ == "__main__":
    fuzz("predicates", read, seeds())
