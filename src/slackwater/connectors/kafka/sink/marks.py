"""Marks: the last record of a slot's partition in a compacted topic, committed together with the rows.

Each partition belongs to one slot, because a read-committed consumer stops at the first open transaction, even
another writer's. Group offsets would not work: they expire. A mark includes the id of the topic that holds its rows:
if that topic was deleted and another created under its name, the mark does not apply to the new one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.backoff import came_true
from slackwater.base.stored import shaped
from slackwater.connectors.kafka.client import Cluster, confluent
from slackwater.connectors.kafka.sink.preparing import admin_module
from slackwater.connectors.sink import DamagedMarkError, Mark, Unavailable

if TYPE_CHECKING:
    from confluent_kafka import Consumer

NEAR: Final = 8
"""How far from the end to look for the mark first: each batch leaves a mark and a transaction marker."""
_PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.05
_POLL_S: Final = 1.0
_SETTINGS: Final = {
    "group.id": "slackwater-marks",  # required by the client; nothing is ever committed to it
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 10,  # only an empty fetch shows the end of a partition
    "log_level": "2",
}


def mark_record(mark: Mark, topic_id: str) -> str:
    """Return a mark as stored: with the id of the topic that holds its rows."""
    return json.dumps({**mark.as_dict(), "topic_id": topic_id})


@dataclass(frozen=True, kw_only=True)
class MarksReader:
    """Reads the last mark of a slot."""

    cluster: Cluster
    topic: str
    partition: int
    key: str
    """The key of the slot's marks, in case the partition contains others."""
    topic_id: str
    """The id of the topic that rows are written to."""

    def last(self) -> Mark | None:
        """Return the last committed mark; None if there is none, or its rows were in a topic that no longer exists.

        The slot must have been opened: then none of its transactions is open, and none can be committed later. Aborted
        records and transaction markers may follow the mark, so the search starts further and further from the end.
        """
        begin, end = self._range()
        distance = NEAR
        with self._consumer() as consumer:
            while begin < end:
                start = max(begin, end - distance)
                found = self._last_between(consumer, start, end)
                if found is not None:
                    # Records of earlier versions have no topic id.
                    is_of_the_topic = found.get("topic_id", self.topic_id) == self.topic_id
                    return Mark.from_dict(found) if is_of_the_topic else None
                if start == begin:
                    return None
                distance *= 2
        return None

    def _range(self) -> tuple[int, int]:
        """Return the start and end of the partition, once no open transaction hides its end."""
        module, cluster = confluent(), self.cluster
        place = (self.topic, self.partition)
        spec: Any = {module.TopicPartition(*place): admin_module().OffsetSpec.latest()}
        [asked] = cluster.admin.list_offsets(spec, isolation_level=module.IsolationLevel.READ_UNCOMMITTED).values()
        high: int = asked.result().offset
        end = -1

        def is_visible() -> bool:
            nonlocal end
            end = cluster.ends([place])[place]
            return end >= high

        if not came_true(is_visible, within_s=_PATIENCE_S, every_s=_LOOK_S):
            raise Unavailable(
                f"a transaction that no producer of ours holds is still open at offset {end} of partition "
                f"{self.partition} of {self.topic}; `kafka-transactions.sh find-hanging` tells whether it hangs"
            )
        return cluster.begins([place])[place], end

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        consumer = confluent().Consumer({**self.cluster.connection.for_librdkafka(), **_SETTINGS})
        try:
            yield consumer
        finally:
            consumer.close()

    def _last_between(self, consumer: Consumer, start: int, end: int) -> dict[str, Any] | None:
        module = confluent()
        consumer.assign([module.TopicPartition(self.topic, self.partition, start)])
        found, patience = None, time.monotonic() + _PATIENCE_S
        while time.monotonic() < patience:
            # One at a time: a call for many records waits until it has that many, or until its timeout.
            message: Any = consumer.poll(_POLL_S)
            error = None if message is None else message.error()
            if message is None or (error is not None and error.name() == "GROUP_AUTHORIZATION_FAILED"):
                continue  # the group is never used, so it needs no permissions
            if error is not None and error.code() != module.KafkaError._PARTITION_EOF:  # noqa: SLF001  librdkafka's own name
                raise module.KafkaException(error)
            if error is None and message.key() == self.key.encode():
                found = _stored(message.value())
            # The last offset is usually a transaction marker, not a record: then the end of the partition decides.
            if error is not None or message.offset() >= end - 1:
                return found
        raise Unavailable(f"partition {self.partition} of {self.topic} could not be read within {_PATIENCE_S:.0f} s")


def _stored(value: bytes | None) -> dict[str, Any]:
    try:
        found: dict[str, Any] = shaped(json.loads(value or b""), dict)
    except ValueError as error:
        raise DamagedMarkError(f"{value!r:.80} is not a mark") from error
    return found
