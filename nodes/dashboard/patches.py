"""What changed between two values, in the form of RFC 7396 (JSON merge patch).

A dict of what is new or another value; null: it is gone. So there are no nulls in what pages get,
and lists are replaced whole: what changes by parts is a dict.
"""

from typing import Any

Patch = dict[str, Any]


def difference(old: dict[str, Any], new: dict[str, Any]) -> Patch:
    """The patch that makes the new value out of the old one; empty when they are the same."""
    patch: Patch = {}
    for key, value in new.items():
        before = old.get(key)
        if before == value:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            patch[key] = difference(before, value)
        else:
            patch[key] = value
    for key in old:
        if key not in new:
            patch[key] = None
    return patch


def without_nulls(value: Any) -> Any:
    """The same without what is not known, at any depth of dicts."""
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return value


def patched(old: dict[str, Any], patch: Patch) -> dict[str, Any]:
    """What a page makes of it."""
    new = dict(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            before = new.get(key)
            new[key] = patched(before if isinstance(before, dict) else {}, value)
        else:
            new[key] = value
    return new
