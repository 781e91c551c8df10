"""Reads a topic from given offsets to its current end: only committed records, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import polars as pl

from slackwater.base.errors import fault
from slackwater.connectors.kafka.client import Cluster, confluent, kafka_errors
from slackwater.connectors.kafka.reading import messages_between
from slackwater.tools.dead_letters.places import Topic

_POLL_S: Final = 0.1
_SETTINGS: Final = {
    "group.id": "slackwater-dead-letters",  # required by the client; nothing is ever committed to it
    "auto.offset.reset": "error",
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
    ends = {(topic.name, number): end for number, end in ends_of(topic).items()}
    begins = {place: since.get(place[1], 0) for place in ends}
    for messages in messages_between(topic.connection, begins, ends, poll_s=_POLL_S, settings=_SETTINGS):
        yield from messages


def _offsets(topic: Topic) -> tuple[dict[int, int], dict[int, int]]:
    cluster = Cluster(connection=topic.connection)
    with kafka_errors(topic.connection):
        places = cluster.partitions([topic.name])
        begins, ends = cluster.begins(places), cluster.ends(places)
    if not places:
        raise fault("DEAD_LETTERS_TOPIC_MISSING", topic=topic.name, servers=topic.connection.servers)
    return {place[1]: at for place, at in begins.items()}, {place[1]: at for place, at in ends.items()}
