"""Reads the current content of topics on the driver: for tools, not for jobs, which use Spark's connector."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import polars as pl

from slackwater.base.errors import RunError, fault, near_miss
from slackwater.connectors.kafka.client import Cluster, Place, confluent, kafka_errors
from slackwater.connectors.kafka.connection import Connection
from slackwater.connectors.kafka.presence import Presence

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


def existing_partitions(connection: Connection, topics: Iterable[str]) -> list[Place]:
    """Return the partitions of `topics`; raise a fault if one does not exist."""
    names, cluster = list(topics), Cluster(connection=connection)
    with kafka_errors(connection):
        known = cluster.names()
        for name in names:
            if name not in known:
                near = near_miss(name, known)
                raise fault("KAFKA_NO_TOPIC", topic=name, near=near, servers=connection.servers)
        return cluster.partitions(names)


def topic_messages(connection: Connection, topics: Iterable[str], *, limit: int | None = None) -> Iterator[list[Any]]:
    """Return an iterator over the committed messages that `topics` hold now, in lists.

    The messages of a partition are in order. `limit` is the total to read: the newest, an equal share per partition.
    """
    places, cluster = existing_partitions(connection, topics), Cluster(connection=connection)
    with kafka_errors(connection):
        begins, ends = cluster.begins(places), cluster.ends(places)
    if limit is not None:
        shares = equal_shares({place: ends[place] - begins[place] for place in places}, limit)
        begins = {place: ends[place] - share for place, share in shares.items()}
    return messages_between(connection, begins, ends)


def equal_shares(sizes: Mapping[Place, int], limit: int) -> dict[Place, int]:
    """Divide `limit` among partitions of these sizes; the unused share of a small one goes to the others."""
    shares: dict[Place, int] = {}
    for place in sorted(sizes, key=lambda place: (sizes[place], place)):
        shares[place] = min(sizes[place], limit // (len(sizes) - len(shares)))
        limit -= shares[place]
    return shares


def topic_frames(
    connection: Connection, topics: Iterable[str], *, limit: int | None = None
) -> Iterator[tuple[Place, pl.DataFrame]]:
    """Yield the messages of `topic_messages` as frames of one partition each: value, offset and the broker's time."""
    for messages in topic_messages(connection, topics, limit=limit):
        by_place: dict[Place, list[tuple[bytes | None, int, int]]] = {}
        for message in messages:
            row = (message.value(), message.offset(), message.timestamp()[1])
            by_place.setdefault((message.topic(), message.partition()), []).append(row)
        for place, rows in by_place.items():
            yield place, pl.DataFrame(rows, schema=SCHEMA, orient="row")


def messages_between(
    connection: Connection,
    begins: Mapping[Place, int],
    ends: Mapping[Place, int],
    *,
    poll_s: float = _POLL_S,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[list[Any]]:
    """Yield the committed messages from `begins` to `ends` in lists, those of a partition in order.

    A list is what arrived within `poll_s`. `settings` are added to those of the client.
    """
    module, presence = confluent(), Presence(connection=connection)
    unread = {place for place, end in ends.items() if end > begins[place]}
    consumer = module.Consumer({**connection.for_librdkafka(), **_CONF, **presence.settings, **(settings or {})})
    try:
        consumer.assign([module.TopicPartition(*place, begins[place]) for place in unread])
        yield from _until_ends(consumer, unread, ends, presence, poll_s)
    finally:
        consumer.close()


def _until_ends(
    consumer: Any,  # noqa: ANN401  the client's own types
    unread: set[Place],
    ends: Mapping[Place, int],
    presence: Presence,
    poll_s: float,
) -> Iterator[list[Any]]:
    quiet_since = time.monotonic()
    while unread:
        messages = consumer.consume(_AT_ONCE, timeout=poll_s)
        if messages:
            quiet_since = time.monotonic()
            presence.answers()
        elif time.monotonic() - quiet_since > _TIMEOUT_S:
            raise _silence(presence)
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
                with kafka_errors(presence.connection):
                    raise confluent().KafkaException(message.error())
        if wanted:
            yield wanted


def _silence(presence: Presence) -> RunError:
    if presence.is_away:
        return fault("KAFKA_UNREACHABLE", servers=presence.connection, cause="all its brokers are down")
    return fault("KAFKA_REFUSED", servers=presence.connection, cause=f"no records for {_TIMEOUT_S:.0f} s")
