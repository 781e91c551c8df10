"""How FRONT reads a topic: records from the connector, one partition per task, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from slackwater.connectors.chunk import Chunk, gathered
from slackwater.formats.dead_letter_columns import HEADERS

if TYPE_CHECKING:
    from slackwater.connectors.kafka.source.definition import KafkaSource

_WRITTEN_HEADERS: Final = pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))


def kafka_chunks(source: KafkaSource, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield the connector's records: one partition per task, in order."""
    for table in gathered(batches):
        yield _kafka_chunk(source, pl.DataFrame(table))


def _kafka_chunk(source: KafkaSource, records: pl.DataFrame) -> Chunk:
    topic = source.topics[0] if len(source.topics) == 1 else records["topic"][0]
    partition, offsets = f"{topic}/{records['partition'][0]}", records["offset"]
    return Chunk(
        frame=records.select(
            pl.col("value").alias("__payload"),
            pl.col("key").alias("__key"),
            kafka_headers(records["headers"]).alias("__headers"),
        ),
        partition=partition,
        file=partition,
        first_offset=int(offsets[0]),
        source=partition,
        ingestion_ms=records["ingested_ms"],
        offsets=offsets,
    )


def kafka_headers(written: pl.Series) -> pl.Series:
    """Return headers from Spark's JSON, in which their values are base64."""
    if written.null_count() == len(written):
        return pl.Series(written.name, [None], dtype=HEADERS).new_from_index(0, len(written))
    pairs = written.str.json_decode(_WRITTEN_HEADERS)
    value = pl.element().struct.field("value").str.decode("base64")
    name = pl.element().struct.field("key").alias("name")
    return (
        pairs.to_frame("headers").select(pl.col("headers").list.eval(pl.struct(name, value.alias("value")))).to_series()
    )
