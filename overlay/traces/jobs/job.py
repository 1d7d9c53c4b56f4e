"""What a job is: digests of the rows that add up over files, and tables concluded from them.

A digest is a small table. That of many files is the union of the digests of each, so a folder
that grew costs only its new files. A job's tables are concluded from digests alone: `job(rows)` is
the same as concluding from digests that were kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Digests: TypeAlias = "Mapping[str, DataFrame]"


@dataclass(frozen=True)
class Digest:
    """What is kept of the rows.

    What tables conclude must be the same whichever way the files were divided, but for what the
    module says. `nodes` is small, and knows every node of the rows: see `jobs/nodes.py`.
    """

    name: str
    schema: str  # as SQL declares columns
    of: Callable[[DataFrame, DataFrame], DataFrame]

    def take(self, rows: DataFrame, nodes: DataFrame) -> DataFrame:
        """Digest rows; the columns are as declared."""
        return conform(self.of(rows, nodes), self.schema)


@dataclass(frozen=True)
class Table:
    """What people read: one result of a job."""

    name: str
    schema: str
    meaning: str
    conclude: Callable[[Digests], DataFrame]

    def of(self, digests: Digests) -> DataFrame:
        """Conclude; the columns are as declared."""
        return conform(self.conclude(digests), self.schema)


@dataclass(frozen=True)
class Job:
    """One question about a run; the first table is the answer, others are details."""

    name: str
    needs: tuple[Digest, ...]
    tables: tuple[Table, ...]

    def __call__(self, rows: DataFrame, table: str = "") -> DataFrame:
        """Answer for these rows."""
        from overlay.traces.jobs.nodes import NODES, settle

        first = NODES.take(rows, rows)
        nodes = settle(first)
        digests = {one.name: one.take(rows, nodes) for one in self.needs} | {NODES.name: first}
        return self.table(table).of(digests)

    def table(self, name: str = "") -> Table:
        """One of its tables by name; the first one without."""
        return next(one for one in self.tables if name in ("", one.name))


def conform(frame: DataFrame, schema: str) -> DataFrame:
    """The declared columns, in their order and with their types."""
    fields = StructType.fromDDL(schema).fields
    return frame.select(*(F.col(f"`{one.name}`").cast(one.dataType) for one in fields))


def of_kinds(rows: DataFrame, *kinds: str) -> DataFrame:
    """Only rows of these kinds."""
    return rows.where(F.col("kind").isin(*kinds))
