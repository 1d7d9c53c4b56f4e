"""How tables look: whole where there is room, a line for each cell where there is not."""

import pytest
from rich.console import Console

from nodes.cli import output

COLUMNS = ("node", "address")
ROWS = [("ada", "tcp://192.0.2.1:65535"), ("[b]bob[/b]", "-")]


def shown(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(output, "console", lambda: Console(width=width))
    output.print_table(COLUMNS, ROWS, title="nodes")
    return capsys.readouterr().out


def test_a_table_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = shown(60, monkeypatch, capsys)
    assert "│ ada        │ tcp://192.0.2.1:65535 │" in table
    assert "[b]bob[/b]" in table, "names are text, never markup"


def test_lines_where_a_word_would_break(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(30, monkeypatch, capsys).splitlines() == [
        "nodes",
        "",
        "node     ada",
        "address  tcp://192.0.2.1:65535",
        "",
        "node     [b]bob[/b]",
        "address  -",
    ]
