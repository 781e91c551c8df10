"""Reads a topic from given offsets to its current end: only committed records, each once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import polars as pl

from slackwater.base.errors import fault
from slackwater.connectors.kafka.client import Cluster, confluent, kafka_errors
from slackwater.tools.dead_letters.places import Topic

_AT_ONCE: Final = 10_000
_POLL_S: Final = 0.1
_TIMEOUT_S: Final = 60.0
_SETTINGS: Final = {
    "group.id": "slackwater-dead-letters",  # required by the client; nothing is ever committed to it
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "log_level": "2",  # we report an unavailable broker ourselves
}


def ends_of(topic: Topic) -> dict[int, int]:
    """Return the end of each partition: records committed later have this offset or a larger one."""
    return _offsets(topic)[1]


def high_ends_of(topic: Topic) -> dict[int, int]:
    """Return the end of each partition, including records that are not committed yet."""
    module, cluster = confluent(), Cluster(connection=topic.connection)
    with kafka_errors(topic.connection):
        places = cluster.partitions([topic.name])
        admin = cluster.admin
        asked = admin.list_offsets(
            {module.TopicPartition(*place): module.admin.OffsetSpec.latest() for place in places},
            isolation_level=module.IsolationLevel.READ_UNCOMMITTED,
        )
        return {place.partition: future.result().offset for place, future in asked.items()}


def begins_of(topic: Topic) -> dict[int, int]:
    """Return the offset of the first record that each partition still has."""
    return _offsets(topic)[0]


def read_values(topic: Topic) -> tuple[pl.Series, Callable[[int], str]]:
    """Return the values of all records, partition by partition, and a function that describes the position of each.

    A record without a value deletes others with its key in a compacted topic; it is not a letter.
    """
    messages = [message for message in read_topic(topic, begins_of(topic)) if message.value() is not None]
    messages.sort(key=lambda message: (message.partition(), message.offset()))
    values = pl.Series("value", [message.value() for message in messages], dtype=pl.Binary)

    def name(number: int) -> str:
        return f"offset {messages[number].offset()} of partition {messages[number].partition()} of {topic}"

    return values, name


def read_topic(topic: Topic, since: Mapping[int, int]) -> Iterator[Any]:
    """Yield the committed records of a topic from the offsets `since` to its current end."""
    module = confluent()
    open_ = {number: end for number, end in ends_of(topic).items() if end > since.get(number, 0)}
    consumer = module.Consumer({**topic.connection.for_librdkafka(), **_SETTINGS})
    heard = time.monotonic()
    try:
        with kafka_errors(topic.connection):
            consumer.assign([module.TopicPartition(topic.name, number, since.get(number, 0)) for number in open_])
            while open_:
                messages = consumer.consume(_AT_ONCE, timeout=_POLL_S)
                if messages:
                    heard = time.monotonic()
                elif time.monotonic() - heard > _TIMEOUT_S:
                    cause = f"no records for {_TIMEOUT_S:.0f} s"
                    raise fault("KAFKA_REFUSED", servers=topic.connection, cause=cause)
                yield from _before_the_end(messages, open_)
    finally:
        consumer.close()


def _before_the_end(messages: list[Any], open_: dict[int, int]) -> Iterator[Any]:
    """Yield the records before the end, and remove finished partitions from `open_`."""
    module = confluent()
    for message in messages:
        number, error = message.partition(), message.error()
        if error is not None and error.code() != module.KafkaError._PARTITION_EOF:  # noqa: SLF001  librdkafka's own name
            raise module.KafkaException(error)
        end = open_.get(number)
        if end is None:
            continue
        if error is None and message.offset() < end:
            yield message
        # The last offset may be a transaction marker, which is not a record: then only EOF shows the end.
        if error is not None or message.offset() >= end - 1:
            del open_[number]


def _offsets(topic: Topic) -> tuple[dict[int, int], dict[int, int]]:
    cluster = Cluster(connection=topic.connection)
    with kafka_errors(topic.connection):
        places = cluster.partitions([topic.name])
        begins, ends = cluster.begins(places), cluster.ends(places)
    if not places:
        raise fault("DEAD_LETTERS_TOPIC_MISSING", topic=topic.name, servers=topic.connection.servers)
    return {place[1]: at for place, at in begins.items()}, {place[1]: at for place, at in ends.items()}
