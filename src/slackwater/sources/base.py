"""The contract of a source: its columns, how Spark reads it, how FRONT sees it, and how the driver watches it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl
import pyarrow as pa

from slackwater.errors import RunError
from slackwater.sources.chunk import Chunk
from slackwater.sources.intake import Intake, StreamPlace
from slackwater.sources.reading import Held, Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    is_partitioned: ClassVar[bool] = False
    """Whether it usually has several partitions."""
    is_measurable: ClassVar[bool] = False
    """Whether `held` reads it without Spark."""
    arrives_in_files: ClassVar[bool] = False
    """Whether a record was received when its file was last modified, a time that copying may change."""

    @property
    @abstractmethod
    def schema(self) -> pl.Schema | None:
        """The columns of a typed source; None for a source of bytes."""

    @property
    def place(self) -> str | None:
        """The folder that is read, which no output may be written to; None if it is no folder."""
        return None

    @property
    def folder(self) -> str | None:
        """The local folder that driver and executors must both see; None if there is none."""
        return None

    @property
    def metadata(self) -> Mapping[str, tuple[pl.DataType, pl.Expr]]:
        """Columns that a source of bytes adds to what is decoded, with their types and how they are made of a chunk's.

        None unless asked for.
        """
        return {}

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

    def intake(self, place: StreamPlace) -> Intake:  # noqa: ARG002  as above
        """Return the driver's part in reading this source."""
        return Intake()

    def held(self, *, limit: int | None = None) -> Held:  # noqa: ARG002  as above
        """Return what the source holds now; of each partition, its share of the newest `limit` records."""
        message = f"{self} cannot be read without Spark"
        raise TypeError(message)

    def retention_ms(self, *, timeout_s: float) -> int | None:  # noqa: ARG002  as above
        """Return how long records are kept, as far as the source tells within `timeout_s`."""
        return None

    def explained(self, error: Exception) -> RunError | None:  # noqa: ARG002  as above
        """Return what is behind an error that has stopped the query, if this source knows."""
        return None

    @abstractmethod
    def __str__(self) -> str:
        """Return the source as `explain` shows it."""
