"""The contract of a source: its columns, how Spark reads it, how FRONT sees it, and how the driver watches it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl
import pyarrow as pa

from slackwater.base.errors import RunError
from slackwater.base.sealed import SealedFolder
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.intake import Intake, StreamPlace
from slackwater.connectors.reading import Held, Reading
from slackwater.connectors.shown_places import ShownPlaces

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """What a task knows besides the rows that Spark passes to it."""

    stream: str
    number: int
    """The task's number within its batch."""
    rows_before: int
    """Rows of the stream read by earlier batches."""
    now_ms: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Source(ABC):
    """Where a stream's rows come from. A source of bytes needs `.decode`; a typed source has a schema."""

    has_places: ClassVar[bool] = True
    """Whether a row has a place (partition and offset) that stays the same when its batch is replayed."""
    read_limit: ClassVar[Literal["files", "rows"] | None] = None
    """The unit in which Spark can limit its next batch; None for a source that cannot wait for others."""
    limits_batches: ClassVar[bool] = True
    """Whether the source itself limits the size of a batch."""
    is_partitioned: ClassVar[bool] = False
    """Whether the source usually has several partitions."""
    is_measurable: ClassVar[bool] = False
    """Whether `held` can read the source without Spark."""
    arrives_in_files: ClassVar[bool] = False
    """Whether a record's ingestion time is the modification time of its file, which copying may change."""

    @property
    @abstractmethod
    def schema(self) -> pl.Schema | None:
        """The columns of a typed source; None for a source of bytes."""

    @property
    def place(self) -> str | None:
        """The folder being read, to which no output may be written; None if the source is not a folder."""
        return None

    @property
    def folder(self) -> str | None:
        """The local folder that both the driver and the executors must see, or None."""
        return None

    @property
    def metadata(self) -> Mapping[str, tuple[pl.DataType, pl.Expr]]:
        """Columns that a source of bytes adds to the decoded ones: their types, and expressions over a chunk's columns.

        Empty unless requested.
        """
        return {}

    def session_conf(self) -> dict[str, str]:
        """Return the Spark settings that a session must be started with for this source."""
        return {}

    def read(self, spark: SparkSession, reading: Reading) -> DataFrame:  # noqa: ARG002  for subclasses
        """Return the streaming DataFrame whose batches `chunks` takes."""
        message = f"{self} cannot run on Spark"
        raise TypeError(message)

    def chunks(self, batches: Iterator[pa.RecordBatch], task: TaskFacts) -> Iterator[Chunk]:  # noqa: ARG002  as above
        """Yield the records that Spark passes to one task, in source order."""
        message = f"{self} cannot run on Spark"
        raise TypeError(message)

    def intake(self, place: StreamPlace) -> Intake:  # noqa: ARG002  as above
        """Return the driver's part in reading this source."""
        return Intake()

    def shown_places(self, files: SealedFolder, number: int) -> ShownPlaces | None:  # noqa: ARG002  as above
        """Return how to find the places that users write; None if rows have them.

        `files` are those of the job's checkpoint, and `number` is the number of the source in its job.
        """
        return None

    def held(self, *, limit: int | None = None) -> Held:  # noqa: ARG002  as above
        """Return the source's current content; for each partition, its share of the newest `limit` records."""
        message = f"{self} cannot be read without Spark"
        raise TypeError(message)

    def retention_ms(self, *, timeout_s: float) -> int | None:  # noqa: ARG002  as above
        """Return how long records are kept, or None if the source does not say within `timeout_s`."""
        return None

    def explained(self, error: Exception) -> RunError | None:  # noqa: ARG002  as above
        """Return the cause of an error that stopped the query, if this source recognises it."""
        return None

    @abstractmethod
    def __str__(self) -> str:
        """Return the source as shown by `explain`."""
