"""Kafka: topics read by Spark's own connector, in bounded batches, with all of a record's metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

import polars as pl
import pyarrow as pa

from slackwater.base.errors import refuse
from slackwater.base.times import EPOCH, render_time
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.intake import StreamPlace
from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.connection import Connection, Sasl, Tls, connection
from slackwater.connectors.kafka.jars import connector_jars
from slackwater.connectors.kafka.source.chunks import kafka_chunks
from slackwater.connectors.kafka.source.held import held_topics
from slackwater.connectors.kafka.source.intake import KafkaIntake
from slackwater.connectors.kafka.source.offsets import Offsets, check_offsets
from slackwater.connectors.kafka.source.stream import kafka_stream
from slackwater.connectors.reading import Held, Reading
from slackwater.connectors.source import Source, TaskFacts
from slackwater.formats.ddl import TIMESTAMP
from slackwater.formats.dead_letter_columns import HEADERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

METADATA: Final[dict[str, tuple[pl.DataType, pl.Expr]]] = {
    "key": (pl.Binary(), pl.col("__key")),
    "headers": (HEADERS, pl.col("__headers")),
    "topic": (pl.String(), pl.col("__part").str.replace(r"/\d+$", "")),
    "partition": (pl.Int32(), pl.col("__part").str.extract(r"/(\d+)$").cast(pl.Int32)),
    "offset": (pl.Int64(), pl.col("__off")),
    "timestamp": (TIMESTAMP, pl.col("__ingested").cast(pl.Datetime("ms", "UTC")).cast(TIMESTAMP)),
}
"""Kafka's metadata of a record, as columns: their types, and expressions over the columns that travel with a row."""

DEFAULT_MAX_RECORDS: Final = 2_000_000
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")

Start = Literal["earliest", "latest"] | datetime | Offsets
OnLoss = Literal["stop", "continue"]


@dataclass(frozen=True, kw_only=True, eq=False)
class KafkaSource(Source):
    """A source that reads one or more topics; a partition is named `topic/number`."""

    read_limit = "rows"
    is_partitioned = True
    is_measurable = True

    connection: Connection
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    starting: Mapping[str, str]
    """The connector's options for where a new checkpoint starts, unless `offsets` does."""
    offsets: Offsets | None
    """Where a new checkpoint starts; omitted partitions start at their earliest record."""
    start_shown: str
    max_records_per_batch: int
    group: str | None
    on_data_loss: OnLoss
    columns: tuple[str, ...] = ()

    @property
    def schema(self) -> None:
        """None: records are bytes."""
        return

    @property
    def metadata(self) -> Mapping[str, tuple[pl.DataType, pl.Expr]]:
        """The requested metadata columns, in addition to the record's own."""
        return {f"kafka_{name}": METADATA[name] for name in self.columns}

    def session_conf(self) -> dict[str, str]:
        """Return the setting with the connector's jars."""
        return {"spark.jars": ",".join(connector_jars())}

    def read(self, spark: SparkSession, reading: Reading) -> DataFrame:  # noqa: ARG002  the trigger bounds the run
        """Return the stream of records."""
        return kafka_stream(spark, self)

    def chunks(self, batches: Iterator[pa.RecordBatch], task: TaskFacts) -> Iterator[Chunk]:  # noqa: ARG002  as above
        """Yield the records of one partition."""
        return kafka_chunks(self, batches)

    def intake(self, place: StreamPlace) -> KafkaIntake:
        """Return the driver's intake for the topics."""
        return KafkaIntake(self, place)

    def held(self, *, limit: int | None = None) -> Held:
        """Return the committed records of the topics, each partition in offset order."""
        return held_topics(self, limit=limit)

    def retention_ms(self, *, timeout_s: float) -> int | None:
        """Return how long the topics keep records, the shortest of them; None if all keep them forever."""
        return (
            Cluster(connection=self.connection).retention_ms(self.topics, timeout_s=timeout_s) if self.topics else None
        )

    def __str__(self) -> str:
        topics = f"topics like {self.pattern}" if self.pattern else ", ".join(self.topics)
        most = f"{self.max_records_per_batch:,}"
        return f"Kafka {topics} at {self.connection}, from {self.start_shown}, {most} records a batch at most"


def kafka(
    servers: str,
    *,
    topic: str | None = None,
    topics: Iterable[str] | None = None,
    pattern: str | None = None,
    start: Start = "earliest",
    max_records_per_batch: int = DEFAULT_MAX_RECORDS,
    metadata: Iterable[str] = (),
    group: str | None = None,
    on_data_loss: OnLoss = "stop",
    tls: Tls | None = None,
    sasl: Sasl | None = None,
) -> KafkaSource:
    """Read Kafka topics: `kafka("localhost:9092", topic="orders")`.

    Pass one of `topic`, `topics` or `pattern` (a regular expression that is valid in both Java and Python). `start`
    is where a new checkpoint starts: "earliest", "latest", a `datetime` (the first record at or after it), or
    offsets as {"orders": {0: 120, 1: 95}}, where omitted partitions start at their earliest record. An existing
    checkpoint resumes where it stopped. A batch reads at most `max_records_per_batch`, so a backlog waits in
    Kafka and not in memory. Only committed records are read.

    `metadata` adds columns to every row: any of "key", "headers", "topic", "partition", "offset" and
    "timestamp" become `kafka_key`, `kafka_headers` and so on. The ingestion time is the broker's timestamp.

    Progress is committed to the consumer group `group` (the pipeline name by default), for Kafka's own tools;
    Slackwater does not read it. If records are lost before they are read, the job stops, unless
    `on_data_loss="continue"`. TLS and SASL: `tls=sw.kafka.tls(...)`, `sasl=sw.kafka.sasl(...)`.
    """
    chosen = _topics(topic, topics, pattern)
    if (
        isinstance(max_records_per_batch, bool)
        or not isinstance(max_records_per_batch, int)
        or max_records_per_batch < 1
    ):
        raise refuse("RATE_LIMIT", what="max_records_per_batch", got=repr(max_records_per_batch))
    if on_data_loss not in ("stop", "continue"):
        raise refuse("KAFKA_ON_LOSS", got=repr(on_data_loss))
    columns = (metadata,) if isinstance(metadata, str) else tuple(metadata)
    for name in columns:
        if name not in METADATA:
            raise refuse("KAFKA_METADATA", got=repr(name), known=", ".join(METADATA))
    offsets = check_offsets(start, chosen, pattern) if isinstance(start, Mapping) else None
    starting, text = _starting(start)
    return KafkaSource(
        connection=connection(servers, tls=tls, sasl=sasl),
        topics=chosen,
        pattern=pattern,
        starting=starting,
        offsets=offsets,
        start_shown=text,
        max_records_per_batch=max_records_per_batch,
        group=group,
        on_data_loss=on_data_loss,
        columns=columns,
    )


def _topics(topic: str | None, topics: Iterable[str] | None, pattern: str | None) -> tuple[str, ...]:
    given = {name: value for name, value in (("topic", topic), ("topics", topics), ("pattern", pattern)) if value}
    if len(given) != 1:
        raise refuse("KAFKA_TOPICS", got=" and ".join(f"`{name}`" for name in given) or "none of them")
    if pattern is not None:
        _check_pattern(pattern)
        return ()
    chosen = (topic,) if topics is None else tuple(topics)
    for name in chosen:
        if not isinstance(name, str) or not _TOPIC.fullmatch(name):
            raise refuse("KAFKA_TOPIC_NAME", got=repr(name))
    return chosen  # type: ignore[return-value]  # checked above


def _check_pattern(pattern: str) -> None:
    """Reject a pattern that is not valid in both: Spark matches topics in Java, the driver's own client in Python."""
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise refuse("KAFKA_PATTERN", got=repr(pattern), cause=error) from error
    if "(?P" in pattern:
        raise refuse("KAFKA_PATTERN", got=repr(pattern), cause="Java has no (?P…)")


def _starting(start: Start) -> tuple[dict[str, str], str]:
    if isinstance(start, str) and start in ("earliest", "latest"):
        return {"startingOffsets": start}, start
    if isinstance(start, datetime) and start.tzinfo is not None:
        moment = round((start - EPOCH).total_seconds() * 1000)
        # Without the strategy, a partition with only older records would be an error.
        options = {"startingTimestamp": str(moment), "startingOffsetsByTimestampStrategy": "latest"}
        return options, render_time(moment)
    if isinstance(start, Mapping):
        return {}, "given offsets"
    raise refuse("KAFKA_START", got=repr(start))
