"""The reference is made from the code, so it lacks nothing that the code has."""

from __future__ import annotations

import re

import pytest

from nodes.reference import commands, diagrams, settings, specification
from nodes.settings import SECTIONS


def test_every_setting_is_told_with_its_reason() -> None:
    page = settings.page()
    for section, kind in SECTIONS.items():
        assert f"\n## {section}\n" in page
        for key in kind.__struct_fields__:
            assert re.search(rf"^\| `{key}` \| .+ \| \S.* \|$", page, re.MULTILINE), (section, key)


def test_every_command_is_told() -> None:
    page = commands.page()
    for name in ("peer", "keys issue", "dht put", "doctor", "config show", "sim"):
        assert f"\n## overlay {name}\n" in page
    assert "| `--log-format` | `text` | How lines on stderr look: text, or json. |" in page
    assert "overlay pub [OPTIONS] TOPIC [TEXTS]..." in page


@pytest.mark.parametrize("name", specification.names())
def test_a_specification_becomes_a_page(name: str) -> None:
    part = specification.page_part(name)
    assert part.startswith("## Specification\n")
    assert "\n## Invariants\n" in part
    for line in part.splitlines():
        if line.startswith("|"):
            assert not re.match(r"\|\s*\|", line), "a row that goes on belongs to the one before"


def test_departures_are_gathered_from_all_modules() -> None:
    part = specification.page_part("membership")
    departures = part.partition("## Departures from the paper")[2]
    assert "Departs from SWIM, whose random targets" in departures
    assert "(`partners.py`)" in departures


def test_a_sequence_is_drawn() -> None:
    svg = diagrams.draw(
        "sequence", "ada bob*\nada -> bob: Ping <1>\nbob --> ada\nnote bob: alive\n"
    )
    assert svg.count("<line") == 4  # two lives, two messages
    assert "Ping &lt;1&gt;" in svg
    assert 'class="box marked"' in svg


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        ("sequence", "ada bob\nada -> eve: Ping", "nobody is called 'eve'"),
        ("sequence", "ada bob\nada bob", "no message and no note: 'ada bob'"),
        ("picture", "ring: ada bob\nada ~ bob", "no place and no line"),
    ],
)
def test_a_line_that_is_none_is_named(kind: str, text: str, complaint: str) -> None:
    with pytest.raises(diagrams.DiagramError, match=complaint):
        diagrams.draw(kind, text)
