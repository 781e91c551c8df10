"""The contract of a source: its columns, how Spark reads it, and how FRONT sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl
import pyarrow as pa

from slackwater.errors import RunError
from slackwater.sources.chunk import Chunk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a job reads a source."""

    bounded: bool
    """Whether the job reads what is there when it starts, and ends."""
    listings: Path | None = None
    """Where the listings of a log are."""
    shares: int = 1
    """How many listings a batch has."""


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """What a task knows besides the rows that Spark hands to it."""

    stream: str
    number: int
    """Among the tasks of its batch."""
    rows_before: int
    """Rows of the stream that the batches before have read."""
    now_ms: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Source(ABC):
    """Where a stream's rows come from. A source of bytes needs `.decode`; a typed one has a schema."""

    has_places: ClassVar[bool] = True
    """Whether a row has a place, partition and offset, that is the same when its batch is run again."""
    read_limit: ClassVar[Literal["files", "rows"] | None] = None
    """What Spark can limit the next batch of it by; None for a source that cannot wait for others."""
    limits_batches: ClassVar[bool] = True
    """Whether the source itself limits how much a batch takes."""

    @property
    @abstractmethod
    def schema(self) -> pl.Schema | None:
        """The columns of a typed source; None for a source of bytes."""

    @property
    def place(self) -> str | None:
        """The folder that is read, which no output may be written to; None if it is no folder."""
        return None

    @property
    def metadata(self) -> pl.Schema:
        """Columns that a source of bytes adds to what is decoded; none unless asked for."""
        return pl.Schema()

    def session_conf(self) -> dict[str, str]:
        """Return the Spark settings that a session must be started with for this source."""
        return {}

    def read(self, spark: SparkSession, reading: Reading) -> DataFrame:  # noqa: ARG002  as subclasses need it
        """Return the stream that Spark reads, as `chunks` takes it."""
        message = f"{self} cannot run on Spark"
        raise TypeError(message)

    def chunks(self, batches: Iterator[pa.RecordBatch], task: TaskFacts) -> Iterator[Chunk]:  # noqa: ARG002  as above
        """Yield the records of what Spark hands to one task, in the order of the source."""
        message = f"{self} cannot run on Spark"
        raise TypeError(message)

    def explained(self, error: Exception) -> RunError | None:  # noqa: ARG002  as above
        """Return what is behind an error that has stopped the query, if this source knows."""
        return None

    @abstractmethod
    def __str__(self) -> str:
        """Return the source as `explain` shows it."""
