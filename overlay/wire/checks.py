"""Limits that types alone do not keep: the length of strings and the depth of nesting."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.frames import PieceStart

_FLAT = (  # neither text nor anything inside
    inspect.BoolType,
    inspect.DateTimeType,
    inspect.DateType,
    inspect.DecimalType,
    inspect.EnumType,
    inspect.FloatType,
    inspect.IntType,
    inspect.LiteralType,
    inspect.NoneType,
    inspect.TimeDeltaType,
    inspect.TimeType,
    inspect.UUIDType,
)
_TEXT = (inspect.StrType, inspect.BytesType, inspect.ByteArrayType, inspect.MemoryViewType)
_OPEN = (inspect.AnyType, inspect.RawType, inspect.ExtType)  # the sender decides what it holds


class Checks:
    """Knows which fields of which message types need a look, and looks."""

    def __init__(self, limits: Limits) -> None:
        self._strings = limits.string_bytes
        self._nesting = limits.nesting
        self._fields: dict[type[Message], tuple[str, ...]] = {}
        self.open_ended: dict[type[Message], None] = {}
        """Types that hold `Any` or themselves, so that their depth is up to the sender."""

    def learn(self, kinds: Iterable[type[Message]]) -> None:
        """Take in types; one that can never be within the limits is the programmer's error."""
        for kind in kinds:
            info = shape_of(kind)
            depth = depth_of(kind)
            if depth is None:
                self.open_ended[kind] = None
            elif depth > self._nesting:
                raise LocalProtocolError(
                    f"{kind.__name__} nests {depth} deep; limits.nesting is {self._nesting}"
                )
            # What may be long is bounded by its frame, and by limits.message_bytes.
            long = "message" if kind is PieceStart else "payload"
            self._fields[kind] = tuple(
                field.name
                for field in info.fields
                if field.name != long and not isinstance(field.type, _FLAT)
            )

    def fault(self, msg: Message) -> RemoteProtocolError | None:
        """Return what is wrong with a message, if anything."""
        for field in self._fields[type(msg)]:
            fault = self._fault(getattr(msg, field), 2)
            if fault is not None:
                return fault
        return None

    def _fault(self, value: Any, depth: int) -> RemoteProtocolError | None:
        if isinstance(value, str):
            size = len(value) if value.isascii() else len(value.encode())
            return self._too_long(size) if size > self._strings else None
        if isinstance(value, (bytes, bytearray, memoryview, msgspec.Raw)):
            return self._too_long(len(value)) if len(value) > self._strings else None
        inner: Iterable[Any]
        if isinstance(value, (list, tuple, set, frozenset)):
            inner = value
        elif isinstance(value, dict):
            inner = [*value.keys(), *value.values()]
        elif isinstance(value, msgspec.Struct):
            inner = [getattr(value, name) for name in value.__struct_fields__]
        elif isinstance(value, msgspec.msgpack.Ext):
            inner = [value.data]
        else:
            return None
        if depth > self._nesting:
            return RemoteProtocolError("nested-too-deep", f"more than {self._nesting}")
        for item in inner:
            fault = self._fault(item, depth + 1)
            if fault is not None:
                return fault
        return None

    def _too_long(self, size: int) -> RemoteProtocolError:
        return RemoteProtocolError("string-too-long", f"{size} bytes, at most {self._strings}")


@lru_cache(maxsize=4096)
def shape_of(kind: type[Message]) -> inspect.StructType:
    """What msgspec knows of a type; asking takes a tenth of a millisecond."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return info


@lru_cache(maxsize=4096)
def depth_of(kind: type[Message]) -> int | None:
    """How deep a type nests; None when that is up to the sender. Reader and writer both ask."""
    return _depth(shape_of(kind), ())


def payload_bound(kind: type[Message]) -> int | None:
    """How many bytes the `payload` of a type may have; None: it has none that travels apart."""
    for field in shape_of(kind).fields:
        if field.name == "payload" and isinstance(field.type, inspect.BytesType):
            if field.type.min_length:
                raise LocalProtocolError(
                    f"{kind.__name__}.payload has a min_length: a payload that travels apart"
                    " leaves an empty one behind"
                )
            most = field.type.max_length
            return 1 << 62 if most is None else most
    return None


def _depth(info: inspect.Type, seen: tuple[type, ...]) -> int | None:
    """Return how deep a type nests; None when it has no bound of its own."""
    if isinstance(info, (*_FLAT, *_TEXT)):
        return 0
    inner: list[inspect.Type]
    if isinstance(info, _OPEN):
        return None
    if isinstance(info, inspect.UnionType):
        depths = [_depth(kind, seen) for kind in info.types]
        return None if None in depths else max(d for d in depths if d is not None)
    if isinstance(info, inspect.StructType):
        if info.cls in seen:
            return None
        seen = (*seen, info.cls)
        inner = [field.type for field in info.fields]
    elif isinstance(info, (inspect.NamedTupleType, inspect.TypedDictType)):
        inner = [field.type for field in info.fields]
    elif isinstance(info, inspect.CollectionType):  # lists, sets, tuples of any length
        inner = [info.item_type]
    elif isinstance(info, inspect.TupleType):
        inner = list(info.item_types)
    elif isinstance(info, inspect.DictType):
        inner = [info.key_type, info.value_type]
    else:
        raise LocalProtocolError(f"a message cannot hold {info}: nobody would look inside of it")
    depths = [_depth(kind, seen) for kind in inner]
    if None in depths:
        return None
    return 1 + max((d for d in depths if d is not None), default=0)
