"""Every message that travels, as a page: `python -m nodes.wire_reference > docs/MESSAGES.md`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from msgspec import inspect

import protocols
from overlay.protocol import Message
from overlay.wire.frames import FRAMEWORK_MESSAGES

HEAD = """# Messages on the wire

Made by `python -m nodes.wire_reference > docs/MESSAGES.md` from the classes; [wire.md](wire.md)
explains how they travel. A message is a MessagePack array: its tag, then its fields in this order.
Fields with a `?` have a default: an older peer leaves them out at the end, a newer one may add
others there, which are to be skipped. Lengths of text are in characters, of bytes in bytes.
"""


def messages_of(owner: str) -> tuple[type[Message], ...]:
    """The messages of a protocol, by tag."""
    package = import_module(f"{protocols.__name__}.{owner}")
    names = [one.name for one in iter_modules(package.__path__) if one.name.endswith("messages")]
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    found = {
        kind: None
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, Message)
        and kind.__module__ == module.__name__
        and kind.__struct_config__.tag is not None
    }
    return tuple(sorted(found, key=_tag))


def owners() -> Iterator[tuple[str, tuple[type[Message], ...]]]:
    """The framework, and each protocol that has messages."""
    yield "framework", FRAMEWORK_MESSAGES
    names = [module.name for module in iter_modules(protocols.__path__) if module.ispkg]
    found = [(name, messages_of(name)) for name in names]
    yield from sorted((one for one in found if one[1]), key=lambda one: _tag(one[1][0]))


def _tag(kind: type[Message]) -> int:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int)
    return tag


def page() -> str:
    """The whole reference."""
    parts = [HEAD]
    for owner, kinds in owners():
        parts.append(f"\n## {owner}\n")
        parts.extend(_section(kind) for kind in kinds)
    return "".join(parts)


def _section(kind: type[Message]) -> str:
    about = " ".join((kind.__doc__ or "").split())
    lane = " Bulk lane." if getattr(kind, "bulk", False) else ""
    lines = [f"\n### {_tag(kind)} {kind.__name__}\n\n{about}{lane}\n"]
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    if info.fields:
        lines.append("\n| field | type |\n|---|---|\n")
        lines += [
            f"| `{field.name}`{'' if field.required else ' ?'} | {describe(field.type)} |\n"
            for field in info.fields
        ]
    return "".join(lines)


def describe(info: inspect.Type) -> str:
    """A type in words, with its bounds."""
    if isinstance(info, inspect.StrType):
        return "text" + _length(info)
    if isinstance(info, inspect.BytesType):
        return "bytes" + _length(info)
    if isinstance(info, (inspect.IntType, inspect.FloatType)):
        return ("integer" if isinstance(info, inspect.IntType) else "float") + _range(info)
    if isinstance(info, inspect.EnumType):
        values = ", ".join(f"{one.value} {one.name.lower()}" for one in info.cls)
        return f"one of {values}"
    if isinstance(info, inspect.StructType):
        return _fields(info.cls.__name__, [(one.name, one.type) for one in info.fields], info.tag)
    if isinstance(info, inspect.NamedTupleType):
        return _fields(info.cls.__name__, [(one.name, one.type) for one in info.fields], None)
    if isinstance(info, inspect.TupleType):
        return "[" + ", ".join(map(describe, info.item_types)) + "]"
    if isinstance(info, inspect.CollectionType):
        return f"array{_length(info)} of {describe(info.item_type)}"
    if isinstance(info, inspect.DictType):
        return f"map{_length(info)} of {describe(info.key_type)} to {describe(info.value_type)}"
    if isinstance(info, inspect.UnionType):
        return " or ".join(map(describe, info.types))
    plain = {inspect.BoolType: "boolean", inspect.NoneType: "nil", inspect.AnyType: "anything"}
    return plain.get(type(info), type(info).__name__.removesuffix("Type").lower())


def _fields(name: str, fields: list[tuple[str, inspect.Type]], tag: object) -> str:
    first = "" if tag is None else f"{tag}, "
    inside = ", ".join(f"{field} {describe(kind)}" for field, kind in fields)
    return f"{name} [{first}{inside}]"


def _length(
    info: inspect.StrType | inspect.BytesType | inspect.CollectionType | inspect.DictType,
) -> str:
    least, most = info.min_length, info.max_length
    if least is None and most is None:
        return ""
    if least == most:
        return f" ({most:,})"
    return f" ({least or 0:,} to {'' if most is None else format(most, ',')})"


def _range(info: inspect.IntType | inspect.FloatType) -> str:
    least = info.ge if info.ge is not None else info.gt
    most = info.le if info.le is not None else info.lt
    if least is None and most is None:
        return ""
    least_words = "" if least is None else f"{'from' if info.ge is not None else 'over'} "
    most_words = "" if most is None else f"{'to' if info.le is not None else 'below'} "
    words = (least_words + _number(least), most_words + _number(most))
    return f" ({' '.join(filter(None, words))})"


def _number(value: float | None) -> str:
    """Equal annotations share one object, so the bound of a float may be an integer, or not."""
    if value is None:
        return ""
    return f"{int(value):,}" if value == int(value) else str(value)


if __name__ == "__main__":
    print(page(), end="")
