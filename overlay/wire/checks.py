"""Limits that types alone do not keep: the length of strings and the depth of nesting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import inspect

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.limits import Limits
from overlay.protocol import Message


class Checks:
    """Knows which message types need a look after decoding, and looks."""

    def __init__(self, kinds: Iterable[type[Message]], limits: Limits) -> None:
        self._strings = limits.string_bytes
        self._nesting = limits.nesting
        self.open_ended = False  # a type holds `Any`, so its depth is up to the sender
        for kind in kinds:
            depth = _depth(inspect.type_info(kind), ())
            if depth is None:
                self.open_ended = True
            elif depth > self._nesting:
                raise LocalProtocolError(
                    f"{kind.__name__} nests {depth} deep; limits.nesting is {self._nesting}"
                )

    def fault(self, msg: Message) -> RemoteProtocolError | None:
        """Return what is wrong with a decoded message, if anything."""
        for field in msg.__struct_fields__:
            if field == "payload":
                continue  # bounded by the frame, and by limits.message_bytes
            fault = self._fault(getattr(msg, field), 2)
            if fault is not None:
                return fault
        return None

    def _fault(self, value: Any, depth: int) -> RemoteProtocolError | None:
        if isinstance(value, str):
            size = len(value) if value.isascii() else len(value.encode())
            return self._too_long(size) if size > self._strings else None
        if isinstance(value, bytes):
            return self._too_long(len(value)) if len(value) > self._strings else None
        inner: Iterable[Any]
        if isinstance(value, (list, tuple)):
            inner = value
        elif isinstance(value, dict):
            inner = [*value.keys(), *value.values()]
        elif isinstance(value, msgspec.Struct):
            inner = [getattr(value, name) for name in value.__struct_fields__]
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


def _depth(info: Any, seen: tuple[type, ...]) -> int | None:
    """Return how deep a type nests; None when it has no bound of its own."""
    if isinstance(info, (inspect.AnyType, inspect.RawType)):
        return None
    inner: list[Any] = []
    if isinstance(info, inspect.StructType):
        if info.cls in seen:
            return None
        seen = (*seen, info.cls)
        inner = [field.type for field in info.fields]
    elif isinstance(info, inspect.UnionType):
        depths = [_depth(kind, seen) for kind in info.types]
        return None if None in depths else max(d for d in depths if d is not None)
    elif isinstance(info, (inspect.ListType, inspect.VarTupleType, inspect.FrozenSetType)):
        inner = [info.item_type]
    elif isinstance(info, inspect.TupleType):
        inner = list(info.item_types)
    elif isinstance(info, inspect.DictType):
        inner = [info.key_type, info.value_type]
    else:
        return 0
    depths = [_depth(kind, seen) for kind in inner]
    if None in depths:
        return None
    return 1 + max((d for d in depths if d is not None), default=0)
