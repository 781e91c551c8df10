"""Sends dead letters to a topic: each batch is a transaction, and a header identifies a record's batch.

The header is `slackwater-retry-id`, with the ids of the letter and of the batch. A transaction that a crash left open
ends when the next producer takes its id; from then on, the records of the batch are in the topic, after the offsets
noted in the intent, or never will be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import polars as pl

from slackwater.base.backoff import came_true
from slackwater.connectors.kafka.client import confluent, kafka_errors
from slackwater.tools.dead_letters.ledger import Intent
from slackwater.tools.dead_letters.places import Topic
from slackwater.tools.dead_letters.repair import Left
from slackwater.tools.dead_letters.targets import RetryTarget, UnsureError, slices
from slackwater.tools.dead_letters.topics import begins_of, ends_of, high_ends_of, read_topic

RETRY_HEADER: Final = "slackwater-retry-id"
_TIMEOUT_S: Final = 60.0
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.1
_ANY_PARTITION: Final = -1


@dataclass(kw_only=True)
class RetriesToTopic(RetryTarget):
    """A topic. A letter that came from it returns to its partition; for any other, the key chooses the partition."""

    topic: Topic
    transaction: str = field(default_factory=lambda: f"slackwater-retry-{uuid4().hex}")
    _producer: Any = None

    def check(self) -> None:
        """Refuse a topic that does not exist."""
        ends_of(self.topic)

    def unsendable(self, letters: pl.DataFrame) -> list[Left]:  # noqa: ARG002  Kafka can hold any bytes
        """Return an empty list: Kafka can hold any bytes."""
        return []

    def batches(self, letters: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Split the letters into batches, in the order of their offsets."""
        yield from slices(letters.sort("partition", "offset"))

    def facts(self, batch: str, letters: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002  the same for all letters
        """Return the transaction's id, and the ends of the partitions before the batch."""
        return {"transaction": self.transaction, "ends": ends_of(self.topic)}

    def publish(self, intent: Intent, letters: pl.DataFrame) -> Mapping[str, Any]:
        """Produce the records and commit them."""
        count = len(ends_of(self.topic))
        with kafka_errors(self.topic.connection):
            if self._producer is None:
                self._producer = self._transactional(self.transaction)
            self._producer.begin_transaction()
            for record in letters.iter_rows(named=True):
                self._produce(record, intent, count)
            self._producer.commit_transaction(_TIMEOUT_S)  # flushes, and fails if a record was not accepted
        return {"records": letters.height}

    def holds(self, intent: Intent) -> bool:
        """End the batch's transaction, and return whether its records were committed."""
        with kafka_errors(self.topic.connection):
            self._transactional(intent.facts["transaction"])
        since = {int(number): end for number, end in intent.facts["ends"].items()}
        gone = [number for number, begin in begins_of(self.topic).items() if begin > since.get(number, begin)]
        if gone:
            raise UnsureError(f"partition {gone[0]} no longer has offset {since[gone[0]]}")
        self._await_others()
        ours = f"/{intent.batch}".encode()
        return any(_retry_id(message).endswith(ours) for message in read_topic(self.topic, since))

    def tidy(self, intent: Intent) -> None:
        """Do nothing: a transaction leaves nothing behind."""

    def _transactional(self, transaction: str) -> Any:  # noqa: ANN401  the client's own type
        """Return a producer with a transactional id; a transaction that another one left open under it is aborted."""
        producer = confluent().Producer(
            {
                **self.topic.connection.for_librdkafka(),
                "transactional.id": transaction,
                "partitioner": "murmur2_random",  # chooses by key, as Java's producers do
                "log_level": "2",
            }
        )
        producer.init_transactions(_TIMEOUT_S)
        return producer

    def _produce(self, letter: dict[str, Any], intent: Intent, count: int) -> None:
        headers = [(each["name"], each["value"]) for each in letter["headers"] or () if each["name"] != RETRY_HEADER]
        headers.append((RETRY_HEADER, f"{letter['id']}/{intent.batch}".encode()))
        partition = _own_partition(letter["partition"], self.topic.name, count)
        while True:
            try:
                self._producer.produce(
                    self.topic.name, letter["payload"], letter["key"], headers=headers, partition=partition
                )
            except BufferError:
                self._producer.poll(_POLL_S)
            else:
                return

    def _await_others(self) -> None:
        """Wait until no open transaction of any producer hides the end of the topic: our records could be behind it."""
        high = high_ends_of(self.topic)

        def are_visible() -> bool:
            return all(ends_of(self.topic).get(number, 0) >= end for number, end in high.items())

        if not came_true(are_visible, within_s=_PATIENCE_S):
            raise UnsureError("another transaction is open on the topic; try again when it has finished")


def _own_partition(name: str, topic: str, count: int) -> int:
    """Return the letter's partition if it is one of `topic`, or `_ANY_PARTITION`."""
    before, _, number = name.rpartition("/")
    if before == topic and number.isdecimal() and int(number) < count:
        return int(number)
    return _ANY_PARTITION


def _retry_id(message: Any) -> bytes:  # noqa: ANN401  the client's own type
    for name, value in message.headers() or ():
        if name == RETRY_HEADER and value is not None:
            return bytes(value)
    return b""
