"""Diagrams as text, drawn as SVG: they need no program, no network, and fit light and dark pages.

    sequence                         picture
    ada bob                          ring east: ada bob cyd
    ada -> bob: Ping                 row: home
    bob --> ada: Ack                 ada - cyd: a link
    note bob: alive                  bob => home: registers

A sequence has its nodes in the first line, then messages (`-->`: one that may be lost, or not
come) and notes. A picture has places, a line each from left to right (a *ring* has its name in the
middle; a *row* stands below what came before), then lines between two places: `-` links, `->`
and `=>` go one way. A name with a `*` is marked. Colours are the page's (`docs/assets/site.css`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import escape
from typing import NamedTuple, TypeVar

STEP = 44  # px between two messages
LANE = 190  # px between two nodes
RADIUS = 60
HALF_BOX = 15
GAP = 150  # px between two places of a row
LINES = {"-": "link", "->": "message", "-->": "message lost", "=>": "strong"}
_ARROW = re.compile(r"(\S+) (-->|->|=>|-) (\S+?)(?:: (.*))?$")
_NOTE = re.compile(r"note (\S+): (.*)$")
_PLACES = re.compile(r"(ring|row)(?: ([^:]+))?: (.+)$")


P = TypeVar("P")


class DiagramError(Exception):
    """A line that is none."""


class Point(NamedTuple):
    """Where something is."""

    x: float
    y: float


def draw(kind: str, text: str) -> str:
    """An `<svg>` for a page; DiagramError names the line that cannot be read."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return {"sequence": _sequence, "picture": _picture}[kind](lines)


def _sequence(lines: list[str]) -> str:
    names = lines[0].split()
    at = {name.strip("*"): 70 + LANE * place for place, name in enumerate(names)}
    height = 64 + STEP * len(lines[1:])
    parts = [f'<line class="life" x1="{x}" y1="42" x2="{x}" y2="{height}"/>' for x in at.values()]
    parts += [_box(Point(at[name.strip("*")], 26), name) for name in names]
    for number, line in enumerate(lines[1:]):
        y = 82 + STEP * number
        if note := _NOTE.match(line):
            who, said = note.groups()
            parts.append(_note(Point(_of(at, who, line), y), said))
        elif arrow := _ARROW.match(line):
            source, kind, target, said = arrow.groups()
            begin, end = _of(at, source, line), _of(at, target, line)
            style = "message lost" if kind == "-->" else "message"
            tip = end - math.copysign(3, end - begin)
            parts.append(_line(Point(begin, y), Point(tip, y), style))
            parts.append(_label(Point((begin + end) / 2, y - 8), said or ""))
        else:
            raise DiagramError(f"no message and no note: {line!r}")
    return _svg(140 + LANE * (len(names) - 1), height + 8, parts)


class _Places:
    """Where the places of a picture are: rings side by side, rows below each other."""

    def __init__(self, most: int) -> None:
        self._most = most  # places in one row
        self.at: dict[str, Point] = {}
        self.shapes: list[str] = []
        self.boxes: list[str] = []
        self.width = 0.0
        self.bottom = 0.0
        self._top = 0.0
        self._right = 0.0

    def ring(self, title: str, names: list[str]) -> None:
        middle = Point(self._right + RADIUS + 48, self._top + RADIUS + 24)
        self.shapes.append(f'<circle class="ring" cx="{middle.x}" cy="{middle.y}" r="{RADIUS}"/>')
        self.shapes.append(_label(Point(middle.x, middle.y + 5), title, "title"))
        for place, name in enumerate(names):
            turn = 2 * math.pi * place / len(names) - math.pi / 2
            x, y = middle.x + RADIUS * math.cos(turn), middle.y + RADIUS * math.sin(turn)
            self._put(name, Point(x, y))
        self._right += 2 * RADIUS + 100
        self.bottom = max(self.bottom, self._top + 2 * RADIUS + 48)
        self.width = max(self.width, self._right)

    def row(self, title: str, names: list[str]) -> None:
        self._top, self._right = self.bottom, 0.0
        if title:
            self.shapes.append(_label(Point(6, self._top + 37), title, "title left"))
        start = 165.0 if title else 75 + GAP * (self._most - len(names)) / 2
        for place, name in enumerate(names):
            self._put(name, Point(start + GAP * place, self._top + 32))
        self.bottom += 66
        last = self.at[names[-1].strip("*")]
        self.width = max(self.width, last.x + _half(names[-1]) + 8)

    def _put(self, name: str, spot: Point) -> None:
        self.at[name.strip("*")] = spot
        self.boxes.append(_box(spot, name))


def _picture(lines: list[str]) -> str:
    most = max((len(told[3].split()) for line in lines if (told := _PLACES.match(line))), default=0)
    places, arrows, labels = _Places(most), [], []
    for line in lines:
        if told := _PLACES.match(line):
            kind, title, words = told.groups()
            add = places.ring if kind == "ring" else places.row
            add((title or "").replace("_", " "), words.split())
        elif arrow := _ARROW.match(line):
            source, kind, target, said = arrow.groups()
            begin, end = _of(places.at, source, line), _of(places.at, target, line)
            start, tip = _clipped(end, begin, _half(source)), _clipped(begin, end, _half(target))
            arrows.append(_line(begin, tip, LINES[kind], kind != "-"))
            labels.append(_beside(start, tip, said or ""))
        else:
            raise DiagramError(f"no place and no line: {line!r}")
    parts = [*places.shapes, *arrows, *places.boxes, *labels]
    return _svg(places.width, places.bottom, parts)


def _beside(begin: Point, end: Point, said: str) -> str:
    """A label at the middle of a line: above a level one, to the right of an upright one."""
    middle = Point((begin.x + end.x) / 2, (begin.y + end.y) / 2)
    if abs(begin.x - end.x) < abs(begin.y - end.y) / 2:
        return _label(Point(middle.x + 8, middle.y + 5), said, "label left")
    if abs(begin.y - end.y) > HALF_BOX:  # a slanting one: outside of what it spans
        falls = (end.y - begin.y) * (end.x - begin.x) > 0
        aside, style = (10, "label left") if falls else (-10, "label right")
        return _label(Point(middle.x + aside, middle.y), said, style)
    return _label(Point(middle.x, middle.y - 6), said)


def _of(at: Mapping[str, P], name: str, line: str) -> P:
    try:
        return at[name]
    except KeyError:
        raise DiagramError(f"nobody is called {name!r}: {line!r}") from None


def _clipped(begin: Point, end: Point, half: float) -> Point:
    """The point where a line meets the box at its end, which is so wide."""
    dx, dy = begin.x - end.x, begin.y - end.y
    aside = (half + 2) / abs(dx) if abs(dx) > 1 else math.inf
    reach = min(aside, (HALF_BOX + 2) / abs(dy) if abs(dy) > 1 else math.inf)
    return Point(end.x + dx * reach, end.y + dy * reach)


def _half(name: str) -> float:
    """Of the width of a box with that name in it."""
    return max(34.0, 4.2 * len(name.strip("*")) + 8)


def _box(middle: Point, name: str) -> str:
    plain = name.strip("*")
    half = _half(name)
    style = "box marked" if name.endswith("*") else "box"
    return (
        f'<rect class="{style}" x="{middle.x - half:.1f}" y="{middle.y - HALF_BOX:.1f}"'
        f' width="{2 * half:.1f}" height="{2 * HALF_BOX}" rx="6"/>'
        + _label(Point(middle.x, middle.y + 5), plain.replace("_", " "), "name")
    )


def _note(middle: Point, said: str) -> str:
    half = 3.5 * len(said) + 10
    return (
        f'<rect class="note" x="{middle.x - half:.1f}" y="{middle.y - 17:.1f}"'
        f' width="{2 * half:.1f}" height="26" rx="3"/>' + _label(middle, said)
    )


def _line(begin: Point, end: Point, style: str, tip: bool = True) -> str:
    marker = ' marker-end="url(#arrow)"' if tip else ""
    return (
        f'<line class="{style}" x1="{begin.x:.1f}" y1="{begin.y:.1f}" x2="{end.x:.1f}"'
        f' y2="{end.y:.1f}"{marker}/>'
    )


def _label(at: Point, said: str, style: str = "label") -> str:
    if not said:
        return ""
    return f'<text class="{style}" x="{at.x:.1f}" y="{at.y:.1f}">{escape(said)}</text>'


def _svg(width: float, height: float, parts: list[str]) -> str:
    return (
        f'<div class="diagram"><svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' height="{height:.0f}" role="img" xmlns="http://www.w3.org/2000/svg">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="10"'
        ' markerHeight="10" markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
        '<path class="tip" d="M0 0 8 4 0 8z"/>'
        "</marker></defs>" + "".join(parts) + "</svg></div>"
    )
