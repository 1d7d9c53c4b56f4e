"""Topic patterns: levels parted by `/`, `*` stands for one level, `**` for any number of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from overlay.errors import LocalProtocolError

ONE = "*"
ANY = "**"
MAX_LEVELS = 32
MAX_BYTES = 256


class _Gap(NamedTuple):
    """A run of wildcards: exactly `levels` levels, or at least that many if `open`."""

    levels: int
    open: bool


def check_pattern(pattern: str) -> str:
    """Return the pattern if it is well formed; otherwise LocalProtocolError says why not."""
    _levels(pattern)
    return pattern


def check_topic(topic: str) -> str:
    """Return the topic if it is a well-formed pattern without wildcards."""
    for level in _levels(topic):
        if level in (ONE, ANY):
            raise LocalProtocolError(f"topic {topic!a} has a wildcard: name each of its levels")
    return topic


def covers(grant: str, request: str) -> bool:
    """Tell whether every topic that `request` can match is matched by `grant`.

    A topic is a request without wildcards, so this also matches topics.
    """
    wanted = _levels(request)
    if all(level == ANY for level in wanted):
        wanted = [ONE, ANY]  # every topic has a level at least
    # How many levels the first i parts of the request have at the very least.
    at_least = [0]
    for level in wanted:
        at_least.append(at_least[-1] + (level != ANY))
    # Where in the request the parts of the grant read so far can end. Levels are an unbounded
    # alphabet, so what the request leaves open can only be covered by a gap of the grant.
    ends = [0]
    for part in _parts(grant):
        if isinstance(part, str):
            ends = [end + 1 for end in ends if end < len(wanted) and wanted[end] == part]
        elif part.open:
            first = ends[0]  # the earliest end leaves the most for the gap
            ends = [
                end
                for end in range(first, len(wanted) + 1)
                if at_least[end] - at_least[first] >= part.levels
            ]
        else:
            ends = [
                end + part.levels
                for end in ends
                if end + part.levels <= len(wanted)
                and at_least[end + part.levels] - at_least[end] == part.levels
            ]
        if not ends:
            return False
    return ends[-1] == len(wanted)


@lru_cache(maxsize=1024)
def _parts(pattern: str) -> tuple[str | _Gap, ...]:
    """Merge runs of wildcards, since `*/**` and `**/*` mean the same."""
    parts: list[str | _Gap] = []
    for level in _levels(pattern):
        if level not in (ONE, ANY):
            parts.append(level)
            continue
        before = parts.pop() if parts and isinstance(parts[-1], _Gap) else _Gap(0, open=False)
        assert isinstance(before, _Gap)
        parts.append(_Gap(before.levels + (level == ONE), before.open or level == ANY))
    return tuple(parts)


def _levels(pattern: str) -> list[str]:
    size = len(pattern.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise LocalProtocolError(f"a topic pattern has {size} bytes: at most {MAX_BYTES}")
    if not pattern.isprintable():
        raise LocalProtocolError(f"topic pattern {pattern!a} has an unprintable character")
    levels = pattern.split("/")
    if len(levels) > MAX_LEVELS:
        raise LocalProtocolError(f"topic pattern {pattern!a} has over {MAX_LEVELS} levels")
    for level in levels:
        if not level:
            raise LocalProtocolError(
                f"topic pattern {pattern!a} has an empty level: write a/b, not /a/b, a//b or a/b/"
            )
        if ONE in level and level not in (ONE, ANY):
            raise LocalProtocolError(
                f"topic pattern {pattern!a}: a level is '*', '**' or a word, not {level!a}"
            )
    return levels
