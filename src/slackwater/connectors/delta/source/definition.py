"""Delta tables as a source: the current rows, then every commit that adds rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl
import pyarrow as pa

from slackwater.base.errors import RunError, refuse
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.dataframe.rows import frame_chunks, numbered
from slackwater.connectors.delta.jars import delta_path, delta_session_conf
from slackwater.connectors.delta.log_schema import logged_schema
from slackwater.connectors.delta.source.intake import DeltaIntake
from slackwater.connectors.delta.source.stream import changed_source, delta_stream
from slackwater.connectors.intake import StreamPlace
from slackwater.connectors.reading import Reading
from slackwater.connectors.source import Source, TaskFacts
from slackwater.formats.schemas import SchemaSpec, as_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Start = int | str | datetime
_CHANGE: Final = {
    "_change_type": pl.String(),
    "_commit_version": pl.Int64(),
    "_commit_timestamp": pl.Datetime("us", "UTC"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class DeltaSource(Source):
    """A source that reads a Delta table and has its columns."""

    has_places: ClassVar[bool] = False
    path: str
    typed: pl.Schema
    options: tuple[tuple[str, str], ...]
    """Delta's own options for the reader."""
    start: str

    @property
    def schema(self) -> pl.Schema:
        """The table's columns, and those of the change feed if it is read."""
        return self.typed

    @property
    def place(self) -> str:
        """The path of the table."""
        return self.path

    def session_conf(self) -> dict[str, str]:
        """Return the settings that a session needs for Delta."""
        return delta_session_conf()

    def read(self, spark: SparkSession, reading: Reading) -> DataFrame:  # noqa: ARG002  the trigger bounds the run
        """Return the stream of rows."""
        return numbered(delta_stream(spark, self))

    def chunks(self, batches: Iterator[pa.RecordBatch], task: TaskFacts) -> Iterator[Chunk]:
        """Yield the rows, numbered after those of earlier batches."""
        return frame_chunks(self.typed, task, batches)

    def intake(self, place: StreamPlace) -> DeltaIntake:
        """Return the driver's part in reading the table."""
        return DeltaIntake(place)

    def explained(self, error: Exception) -> RunError | None:
        """Return the error for a commit that changed rows, if that stopped the query."""
        return changed_source(self, error)

    def __str__(self) -> str:
        return f"delta {self.path} from {self.start}"


def delta(
    path: str | os.PathLike[str],
    *,
    start: Start = "earliest",
    max_files_per_batch: int = 1_000,
    read_changes: bool = False,
    ignore_changes: bool = False,
    schema: SchemaSpec | None = None,
) -> DeltaSource:
    """Read a Delta table as a stream: `delta("lake/orders", start="2026-03-01T00:00:00Z")`.

    `start` is "earliest" (all current rows, then additions), "latest", a version or a time. A commit that changes or
    deletes rows stops the stream, unless `read_changes=True` reads it as rows with `_change_type` (the table needs
    delta.enableChangeDataFeed), or `ignore_changes=True` skips it. Columns are read from the table's log; a remote
    table, or one that does not exist yet, needs `schema`.
    """
    place = delta_path(path, what="the Delta source")
    if read_changes and ignore_changes:
        raise refuse("DELTA_SOURCE_CHANGES")
    if isinstance(max_files_per_batch, bool) or not isinstance(max_files_per_batch, int) or max_files_per_batch < 1:
        raise refuse("DELTA_SOURCE_FILES", got=repr(max_files_per_batch))
    given = {"maxFilesPerTrigger": str(max_files_per_batch), **_starting(start)}
    if read_changes:
        given["readChangeFeed"] = "true"
    if ignore_changes:
        given["skipChangeCommits"] = "true"
    columns = _declared(place, schema)
    if read_changes:
        columns = pl.Schema({**columns, **_CHANGE})
    return DeltaSource(path=place, typed=columns, options=tuple(given.items()), start=str(start))


def _declared(path: str, schema: SchemaSpec | None) -> pl.Schema:
    if schema is not None:
        return as_schema(schema)
    if "://" in path:
        raise refuse("DELTA_SOURCE_SCHEMA", path=path)
    found = logged_schema(path)
    if found is None:
        raise refuse("DELTA_SOURCE_MISSING", path=path)
    return as_schema(found)


def _starting(start: object) -> dict[str, str]:
    if start == "earliest":
        return {}
    if start == "latest" or (isinstance(start, int) and not isinstance(start, bool) and start >= 0):
        return {"startingVersion": str(start)}
    try:
        time = start if isinstance(start, datetime) else datetime.fromisoformat(start)  # type: ignore[arg-type]  # anything but text raises TypeError
    except (TypeError, ValueError) as error:
        raise refuse("DELTA_SOURCE_START", got=repr(start)) from error
    if time.tzinfo is None:
        raise refuse("DELTA_SOURCE_START", got=repr(start))
    return {"startingTimestamp": time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")}
