"""Reading what a topic holds now, on the driver: for tools, not for jobs, which read through Spark's connector."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

import polars as pl

from slackwater.errors import fault
from slackwater.kafka.client import Cluster, Place, confluent, kafka_errors
from slackwater.kafka.connection import Connection

_AT_ONCE: Final = 10_000
_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 1.0
_CONF: Final = {
    "group.id": "slackwater-tools",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
}

SCHEMA: Final = pl.Schema({"value": pl.Binary(), "offset": pl.Int64(), "timestamp_ms": pl.Int64()})


def topic_messages(connection: Connection, topics: Iterable[str], *, limit: int | None = None) -> Iterator[list[Any]]:
    """Yield the committed messages that `topics` hold now, some at a time; each partition's are in order.

    `limit` is how many to read in all: the newest, of every partition alike.
    """
    names = list(topics)
    cluster, module = Cluster(connection=connection), confluent()
    with kafka_errors(connection):
        places = cluster.partitions(names)
        begins, ends = cluster.begins(places), cluster.ends(places)
    missing = sorted(set(names) - {topic for topic, _ in places})
    if missing:
        raise fault("KAFKA_TOPIC_MISSING", topics=", ".join(missing), servers=connection.servers)
    if limit is not None:
        share = max(1, limit // max(1, len(places)))
        begins = {place: max(begin, ends[place] - share) for place, begin in begins.items()}
    held = {place: end for place, end in ends.items() if end > begins[place]}
    consumer = module.Consumer({**connection.for_librdkafka(), **_CONF})
    try:
        consumer.assign([module.TopicPartition(*place, begins[place]) for place in held])
        yield from _until_ends(consumer, held, connection)
    finally:
        consumer.close()


def topic_frames(
    connection: Connection, topics: Iterable[str], *, limit: int | None = None
) -> Iterator[tuple[Place, pl.DataFrame]]:
    """Yield the same as frames of one partition each: value, offset and the broker's time."""
    for messages in topic_messages(connection, topics, limit=limit):
        by_place: dict[Place, list[tuple[bytes | None, int, int]]] = {}
        for message in messages:
            row = (message.value(), message.offset(), message.timestamp()[1])
            by_place.setdefault((message.topic(), message.partition()), []).append(row)
        for place, rows in by_place.items():
            yield place, pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _until_ends(consumer: Any, ends: dict[Place, int], connection: Connection) -> Iterator[list[Any]]:  # noqa: ANN401  the client's own types
    unread = set(ends)
    quiet_since = time.monotonic()
    while unread:
        messages = consumer.consume(_AT_ONCE, timeout=_POLL_S)
        if messages:
            quiet_since = time.monotonic()
        elif time.monotonic() - quiet_since > _TIMEOUT_S:
            raise fault("KAFKA_REFUSED", servers=connection, cause=f"no records for {_TIMEOUT_S:.0f} s")
        wanted = []
        for message in messages:
            place = (message.topic(), message.partition())
            if message.error() is None:
                if message.offset() < ends[place]:
                    wanted.append(message)
                if message.offset() >= ends[place] - 1:
                    unread.discard(place)
            elif message.error().code() == confluent().KafkaError._PARTITION_EOF:  # noqa: SLF001  librdkafka's own name
                unread.discard(place)
            else:
                raise fault("KAFKA_REFUSED", servers=connection, cause=message.error().str())
        if wanted:
            yield wanted
