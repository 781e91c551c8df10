"""How Spark passes on the rows of a DataFrame, and how FRONT reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from slackwater.connectors.chunk import Chunk, conform, gathered
from slackwater.connectors.source import TaskFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_TASKS: Final = 1 << 16


def numbered(frame: DataFrame) -> DataFrame:
    """Return `frame` with plain column names: PySpark reads a dot in a name as access to a struct field."""
    return frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))


def first_place(rows_before: int) -> int:
    """Return the smallest number that a row can have after this many rows of earlier batches."""
    return rows_before * _MOST_TASKS


def frame_chunks(schema: pl.Schema, task: TaskFacts, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield the rows of a DataFrame as chunks.

    They have no offsets, so they are numbered, continuing after all rows of earlier batches; the tasks of a batch
    number theirs in turn.
    """
    read = task.rows_before
    assert task.number < _MOST_TASKS, "two tasks would give rows the same place"
    for table in gathered(batches):
        frame = conform(pl.DataFrame(table.rename_columns(schema.names())), schema, task.stream)
        stop = read + frame.height
        places = pl.int_range(read, stop, dtype=pl.Int64, eager=True) * _MOST_TASKS + task.number
        yield Chunk(
            frame=frame,
            partition="",
            file=str(task.number),
            first_offset=first_place(read) + task.number,
            source=task.stream,
            ingestion_ms=task.now_ms,
            offsets=places,
        )
        read = stop
