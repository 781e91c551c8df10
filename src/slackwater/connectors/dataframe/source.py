"""Any streaming PySpark DataFrame as a source: the output of Spark SQL, connectors and UDFs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl
import pyarrow as pa

from slackwater.base.errors import refuse
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.dataframe.intake import NumberedIntake
from slackwater.connectors.dataframe.rows import frame_chunks, numbered
from slackwater.connectors.intake import StreamPlace
from slackwater.connectors.reading import Reading
from slackwater.connectors.source import Source, TaskFacts
from slackwater.formats.schemas import as_schema, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True, eq=False)
class DataFrameSource(Source):
    """A source that reads a streaming DataFrame and has its columns."""

    has_places: ClassVar[bool] = False
    limits_batches: ClassVar[bool] = False
    frame: Any
    typed: pl.Schema

    @property
    def schema(self) -> pl.Schema:
        """The DataFrame's columns."""
        return self.typed

    def read(self, spark: SparkSession, reading: Reading) -> DataFrame:  # noqa: ARG002  the trigger bounds the run
        """Return the stream of rows."""
        return numbered(self.frame)

    def chunks(self, batches: Iterator[pa.RecordBatch], task: TaskFacts) -> Iterator[Chunk]:
        """Yield the rows, numbered after those of earlier batches."""
        return frame_chunks(self.typed, task, batches)

    def intake(self, place: StreamPlace) -> NumberedIntake:  # noqa: ARG002  Spark does the rest
        """Return the driver's part in reading the DataFrame."""
        return NumberedIntake()

    def __str__(self) -> str:
        return "Spark DataFrame"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_without_frame, (self.typed,))


def dataframe(frame: Any) -> DataFrameSource:  # noqa: ANN401  Spark types stay out of definitions
    """Read any streaming PySpark DataFrame: `dataframe(spark.readStream.table("orders"))`."""
    if not getattr(frame, "isStreaming", False):
        raise refuse("DATAFRAME_NOT_STREAMING", got=type(frame).__name__)
    ddl = ", ".join(f"{quoted(column.name)} {column.dataType.simpleString()}" for column in frame.schema.fields)
    return DataFrameSource(frame=frame, typed=as_schema(ddl))


def _without_frame(typed: pl.Schema) -> DataFrameSource:
    # A DataFrame exists only on the driver; tasks just need its columns.
    return DataFrameSource(frame=None, typed=typed)
