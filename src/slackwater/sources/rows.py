"""How Spark hands over the rows of a DataFrame, and how FRONT sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from slackwater.sources.base import TaskFacts
from slackwater.sources.chunk import Chunk, conform, gathered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_TASKS: Final = 1 << 16


def numbered(frame: DataFrame) -> DataFrame:
    """Return `frame` with plain names for its columns: PySpark takes a dot for a way into a struct."""
    return frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))


def frame_chunks(schema: pl.Schema, task: TaskFacts, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield the rows of a DataFrame.

    They have no place of their own. So they are numbered, behind all rows of the batches before; the tasks of a batch
    take turns.
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
            first_offset=read * _MOST_TASKS + task.number,
            source=task.stream,
            ingestion_ms=task.now_ms,
            offsets=places,
        )
        read = stop
