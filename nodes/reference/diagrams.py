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
RADIUS = 70
HALF_BOX = 15
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
            parts.append(_line(Point(begin, y), Point(tip, y), style, "arrow"))
            parts.append(_label(Point((begin + end) / 2, y - 8), said or ""))
        else:
            raise DiagramError(f"no message and no note: {line!r}")
    return _svg(140 + LANE * (len(names) - 1), height + 8, parts)


def _picture(lines: list[str]) -> str:
    at: dict[str, Point] = {}
    shapes, boxes, arrows = [], [], []
    top, x, width, row_height = 0.0, 0.0, 0.0, 0.0
    for line in lines:
        if places := _PLACES.match(line):
            kind, title, words = places.groups()
            names = words.split()
            if kind == "row":
                top, x, row_height = top + row_height, 0.0, 70.0
            else:
                row_height = max(row_height, 2 * RADIUS + 100)
            if kind == "ring":
                middle = Point(x + RADIUS + 75, top + RADIUS + 50)
                shapes.append(
                    f'<circle class="ring" cx="{middle.x}" cy="{middle.y}" r="{RADIUS}"/>'
                )
                shapes.append(_label(Point(middle.x, middle.y + 5), title or "", "title"))
                for place, name in enumerate(names):
                    turn = 2 * math.pi * place / len(names) - math.pi / 2
                    spot = Point(
                        middle.x + RADIUS * math.cos(turn), middle.y + RADIUS * math.sin(turn)
                    )
                    at[name.strip("*")] = spot
                    boxes.append(_box(spot, name))
                x += 2 * RADIUS + 170
            else:
                if title:
                    shapes.append(_label(Point(6, top + 40), title, "title left"))
                start = 200.0 if title else 85.0
                for place, name in enumerate(names):
                    at[name.strip("*")] = spot = Point(start + 165 * place, top + 35)
                    boxes.append(_box(spot, name))
                x = start + 165 * len(names) - 80
            width = max(width, x)
        elif arrow := _ARROW.match(line):
            source, kind, target, said = arrow.groups()
            begin, end = _of(at, source, line), _of(at, target, line)
            middle = Point((begin.x + end.x) / 2, (begin.y + end.y) / 2)
            style = {"-": "link", "->": "message", "-->": "message lost", "=>": "strong"}[kind]
            short = _clipped(begin, end) if kind != "-" else end
            arrows.append(_line(begin, short, style, "" if kind == "-" else "arrow"))
            if said:
                arrows.append(_label(Point(middle.x, middle.y - 6), said))
        else:
            raise DiagramError(f"no place and no line: {line!r}")
    return _svg(width, top + row_height, [*shapes, *arrows, *boxes])


def _of(at: Mapping[str, P], name: str, line: str) -> P:
    try:
        return at[name]
    except KeyError:
        raise DiagramError(f"nobody is called {name!r}: {line!r}") from None


def _clipped(begin: Point, end: Point) -> Point:
    """The point where a line meets the box at its end."""
    dx, dy = begin.x - end.x, begin.y - end.y
    reach = min(38 / abs(dx) if dx else math.inf, (HALF_BOX + 2) / abs(dy) if dy else math.inf)
    return Point(end.x + dx * reach, end.y + dy * reach)


def _box(middle: Point, name: str) -> str:
    plain = name.strip("*")
    half = max(34.0, 4.2 * len(plain) + 8)
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


def _line(begin: Point, end: Point, style: str, tip: str) -> str:
    marker = ' marker-end="url(#arrow)"' if tip else ""
    return (
        f'<line class="{style}" x1="{begin.x:.1f}" y1="{begin.y:.1f}" x2="{end.x:.1f}"'
        f' y2="{end.y:.1f}"{marker}/>'
    )


def _label(at: Point, said: str, style: str = "label") -> str:
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
