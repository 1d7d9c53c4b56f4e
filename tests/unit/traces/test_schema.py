"""The schema is a promise to everybody who keeps traces: it may grow, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from overlay.traces.schema import (
    COLUMNS,
    METADATA_KEY,
    NAMES,
    PAGE,
    VERSION,
    FileFacts,
    arrow_schema,
    describe,
    file_facts,
    file_name,
)
from overlay.tracing import Level, Trace
from overlay.tracing.kinds import KINDS

VERSION_1 = (
    *("version", "time", "row", "node", "life", "zone", "offset", "clock_error", "protocol"),
    *("scope", "kind", "message", "peer", "topic", "origin", "stream", "first", "count", "bytes"),
    *("hops", "duration", "detail", "key", "value", "weight"),
)


def test_columns_of_version_1_stay_where_they_are() -> None:
    assert NAMES[: len(VERSION_1)] == VERSION_1
    assert all(column.since <= VERSION for column in COLUMNS)
    assert all(column.since > 1 for column in COLUMNS[len(VERSION_1) :])


def test_every_column_and_kind_is_described() -> None:
    text = describe()
    assert all(column.meaning for column in COLUMNS)
    for name in (*NAMES, *KINDS):
        assert f"| `{name}` |" in text


def test_the_page_about_traces_is_up_to_date() -> None:
    page = Path(__file__).parents[3] / "docs" / "TRACES.md"
    assert page.read_text() == f"{PAGE}\n{describe()}\n", "python -m overlay.traces.schema > …"


def test_kinds_have_a_level_and_speak_of_columns_that_exist() -> None:
    for kind in KINDS.values():
        assert kind.level > Level.OFF
        assert set(kind.columns) <= set(NAMES), kind.name
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.name)


def test_a_record_has_no_field_that_no_column_keeps() -> None:
    assert set(Trace.__struct_fields__) - set(NAMES) == {"since"}


def test_facts_of_a_file_come_back() -> None:
    facts = FileFacts(VERSION, "lab", "ada", 5, 3, 10, 1)
    assert file_facts(arrow_schema(facts)) == facts
    assert file_facts(arrow_schema()) is None
    assert file_facts(arrow_schema().with_metadata({METADATA_KEY: b"{"})) is None


@pytest.mark.parametrize(
    "name", ["ada", ".hidden", "_node", "a:b", "ключ", "x" * 300, "a%20b", "*"]
)
def test_file_names_are_plain_and_never_hidden(name: str) -> None:
    made = file_name(name, 5, 3)
    assert re.fullmatch(r"[0-9a-f]{16}-[0-9]{6}-[A-Za-z0-9._-]+\.parquet", made)
    assert len(made) < 200


def test_file_names_differ_where_names_do() -> None:
    names = ["a:b", "a;b", "a_b", "a-b", "x" * 150, "x" * 151]
    assert len({file_name(name, 1, 1) for name in names}) == len(names)
