"""The current content of topics, read on the driver with Kafka's own client: for tools, not for jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from slackwater.connectors.chunk import Chunk
from slackwater.connectors.kafka.client import Cluster, kafka_errors, partition_name
from slackwater.connectors.kafka.reading import topic_frames
from slackwater.connectors.reading import Held
from slackwater.formats.dead_letter_columns import HEADERS

if TYPE_CHECKING:
    from slackwater.connectors.kafka.source.definition import KafkaSource


def held_topics(kafka: KafkaSource, *, limit: int | None = None) -> Held:
    """Return the records of some topics, each partition in offset order."""
    return Held(chunks=_chunks(kafka, limit))


def _chunks(kafka: KafkaSource, limit: int | None) -> Iterator[Chunk]:
    topics = kafka.topics
    if kafka.pattern is not None:
        with kafka_errors(kafka.connection):
            topics = tuple(Cluster(connection=kafka.connection).topics((), kafka.pattern))
    for place, frame in topic_frames(kafka.connection, topics, limit=limit):
        partition = partition_name(place)
        yield Chunk(
            frame=frame.select(
                pl.col("value").alias("__payload"),
                pl.lit(None, dtype=pl.Binary).alias("__key"),
                pl.lit(None, dtype=HEADERS).alias("__headers"),
            ),
            partition=partition,
            file=partition,
            first_offset=int(frame["offset"][0]),
            source=partition,
            ingestion_ms=frame["timestamp_ms"],
            offsets=frame["offset"],
        )
