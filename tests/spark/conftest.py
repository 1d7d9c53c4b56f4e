"""One session for each process of the tests, and one analysis for all of them."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from overlay.errors import ConfigError
from overlay.traces.analyze import analyse
from overlay.traces.java import find_java
from overlay.traces.session import open_session
from overlay.traces.synthetic import Answers, Plan, generate

SMALL = Plan(rows=20_000, nodes=12, topics=4, subscribers=6)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without Java there is nothing to test here, and the reason says which command helps."""
    try:
        find_java()
    except ConfigError as error:
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(reason=str(error)))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with one core: the other one is for the tests beside these."""
    with open_session("local[1]", memory="1g") as session:
        yield session


class Analysed(NamedTuple):
    """A small synthetic run, what the jobs must find in it, and what they found."""

    traces: Path
    answers: Answers
    out: Path
    told: dict[str, Any]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = pq.read_table(
            self.out / "tables" / f"{table}.parquet"
        ).to_pylist()
        return rows


@pytest.fixture(scope="session")
def analysed(spark: Any, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Analysed:
    """Made once for all processes of the tests, by whichever comes first."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    folder = shared / "analysed"
    with (shared / "analysed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "told.json").exists():
            answers = generate(folder / "traces", SMALL)
            told = analyse(folder / "traces", folder / "out", master="local[1]", memory="1g")
            (folder / "answers.json").write_bytes(msgspec.json.encode(answers))
            (folder / "told.json").write_bytes(msgspec.json.encode(told))
    return Analysed(
        folder / "traces",
        msgspec.json.decode((folder / "answers.json").read_bytes(), type=Answers),
        folder / "out",
        msgspec.json.decode((folder / "told.json").read_bytes()),
    )
