"""The embedded source: an append-only log in a folder, so that everything runs without a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from slackwater.base.errors import refuse
from slackwater.base.folders import local_folder
from slackwater.base.sealed import SealedFolder
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.intake import Intake, StreamPlace
from slackwater.connectors.log.chunks import log_chunks
from slackwater.connectors.log.held import held_log
from slackwater.connectors.log.intake import LogIntake
from slackwater.connectors.log.new_intake import NewLogIntake
from slackwater.connectors.log.places import LogPlaces
from slackwater.connectors.log.reading import LogFormat, avro_columns, list_log
from slackwater.connectors.reading import Held, Reading
from slackwater.connectors.source import Source, TaskFacts
from slackwater.formats.schemas import SchemaSpec, as_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_A_DAY: Final = "1d"
_NAMES: Final[dict[LogFormat, str]] = {"json": "JSON lines", "parquet": "Parquet", "avro": "Avro"}


@dataclass(frozen=True, kw_only=True, eq=False)
class LogSource(Source):
    """An append-only folder of JSON-lines, Parquet or Avro files, one sub-folder per partition.

    The driver lists the files in order, a limited number per batch; Spark tracks which were read; FRONT reads them.
    """

    read_limit = "files"
    is_measurable = True
    arrives_in_files = True

    path: str
    format: LogFormat
    typed: pl.Schema | None
    max_bytes_per_batch: int
    max_files_per_batch: int | None = None

    @property
    def schema(self) -> pl.Schema | None:
        """The columns of a typed log; None for JSON lines, which need decoding."""
        return self.typed

    @property
    def place(self) -> str:
        """The log's folder."""
        return self.path

    def read(self, spark: SparkSession, reading: Reading) -> DataFrame:
        """Return the stream of listings."""
        reader = (
            spark.readStream.format("text")
            .option("recursiveFileLookup", "true")
            # The times of listings only increase; Spark need not remember those of yesterday.
            .option("maxFileAge", _A_DAY)
            # A copy of a checkpoint has its listings in another folder.
            .option("fileNameOnly", "true")
        )
        if reading.bounded:
            # All listings exist, and each batch takes one. A live job creates listings as batches take them.
            reader = reader.option("maxFilesPerTrigger", reading.shares)
        return reader.load(_literal(str(reading.listings)))

    def chunks(self, batches: Iterator[pa.RecordBatch], task: TaskFacts) -> Iterator[Chunk]:  # noqa: ARG002  offsets follow from the files
        """Yield the records of the files in a listing."""
        return log_chunks(self, batches)

    def shown_places(self, files: SealedFolder, number: int) -> LogPlaces:
        """Return how to find the file and the line of a row."""
        return LogPlaces(files, number)

    @property
    def folder(self) -> str:
        """The log's folder."""
        return self.path

    def intake(self, place: StreamPlace) -> Intake:
        """Return the intake that lists the log for Spark."""
        return NewLogIntake(self) if place.progress is None else LogIntake(self, place)

    def held(self, *, limit: int | None = None) -> Held:
        """Return the records of all files, each partition in the order in which a job reads it."""
        return held_log(self, limit=limit)

    def __str__(self) -> str:
        return f"log {self.path} ({_NAMES[self.format]})"


def log(
    path: str | Path,
    *,
    format: LogFormat = "json",  # noqa: A002  the name users expect
    schema: SchemaSpec | None = None,
    max_bytes_per_batch: int = 256 << 20,
    max_files_per_batch: int | None = None,
) -> LogSource:
    """Read an append-only log: `log("data/orders")`.

    Each sub-folder is a partition. Files are written under a temporary name (starting with a dot) and then
    renamed, as `sw.LogWriter` does; after that a file never changes. JSON lines need
    `.decode(formats.json(...))`. A Parquet or Avro log has the columns of `schema`, or of its first file.
    """
    if format not in _NAMES:
        raise refuse("LOG_FORMAT", got=repr(format))
    for what, value in (("max_bytes_per_batch", max_bytes_per_batch), ("max_files_per_batch", max_files_per_batch)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise refuse("RATE_LIMIT", what=what, got=repr(value))
    folder = local_folder(path, what="a log")
    typed = None
    if format != "json":
        typed = as_schema(schema) if schema is not None else _first_schema(folder, format)
    return LogSource(
        path=folder,
        format=format,
        typed=typed,
        max_bytes_per_batch=max_bytes_per_batch,
        max_files_per_batch=max_files_per_batch,
    )


def _first_schema(folder: str, form: LogFormat) -> pl.Schema:
    if not Path(folder).is_dir() or not (files := list_log(folder)):
        raise refuse("LOG_SCHEMA_UNKNOWN", path=folder)
    path = files[0].path
    try:
        return as_schema(pl.read_parquet_schema(path) if form == "parquet" else avro_columns(path))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise refuse("LOG_SCHEMA_UNREADABLE", path=path, cause=error) from error


def _literal(path: str) -> str:
    """Return `path` escaped, since Spark treats it as a glob pattern."""
    return re.sub(r"([\\\[\]{}*?^])", r"\\\1", path)
