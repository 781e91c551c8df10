"""The producer of a slot: records enter its queue, and leave it when the broker has them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.durations import render_ms, roughly
from slackwater.base.errors import fault
from slackwater.connectors.kafka.client import confluent
from slackwater.connectors.kafka.sink.errors import SlotTarget
from slackwater.connectors.kafka.sink.options import MOST_BYTES
from slackwater.connectors.kafka.sink.records import Encoded
from slackwater.connectors.sink import Delivery, Unavailable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

CALL_S: Final = 30.0
"""How long a call to the cluster may take, and how long the queue may make no progress."""
_ABORT_S: Final = 5.0
_PURGED: Final = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")
_LOOK_S: Final = 0.1
_ANY_PARTITION: Final = -1
_NOW: Final = 0
_SLICE: Final = 5_000
_OURS: Final[Mapping[str, Any]] = {
    "log_level": 2,  # the sink itself reports an unavailable broker, once
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.kbytes": 131_072,
    "delivery.report.only.error": True,
}
_BY_DELIVERY: Final[Mapping[Delivery, Mapping[str, Any]]] = {
    "exactly_once": {"enable.idempotence": True},
    "at_least_once": {"enable.idempotence": True},
    "at_most_once": {"acks": 0, "message.send.max.retries": 0, "enable.idempotence": False},
}


@dataclass(kw_only=True)
class RecordSender:
    """A producer, transactional if it has an `identity`; a newer one with the same identity fences it."""

    target: SlotTarget
    delivery: Delivery
    identity: str | None
    settings: Mapping[str, Any]
    _producer: Producer = field(init=False)
    _failed: list[KafkaError] = field(default_factory=list)
    """The errors of records that were not delivered."""
    _heard: list[KafkaError] = field(default_factory=list)
    """The connection errors that the client reported."""
    _begun: float | None = None

    def __post_init__(self) -> None:
        module = confluent()
        settings = {**_OURS, **self.settings, **_BY_DELIVERY[self.delivery], **self.target.connection.for_librdkafka()}
        if self.identity is not None:
            settings |= {"transactional.id": self.identity, "transaction.timeout.ms": self.target.timeout_ms}
        failed = self._failed
        # No callback may reference this object: it would keep the producer and its threads until garbage collection.
        settings |= {"on_delivery": lambda error, _: failed.append(error), "error_cb": self._heard.append}
        try:
            self._producer = module.Producer(settings)
        except module.KafkaException as error:
            raise fault("KAFKA_SINK_SETTING", cause=error.args[0].str()) from error

    def start(self) -> None:
        """Fence earlier producers of this identity, abort their open transactions, and check that the topic exists."""
        if self.identity is not None:
            with self._troubles():
                self._asked(self._producer.init_transactions)
        self._check_topic()  # here, since queued records for a missing topic would wait silently

    def begin(self) -> None:
        """Begin a transaction."""
        with self._troubles():
            self._producer.begin_transaction()
        self._begun = time.monotonic()

    def send(self, records: Encoded) -> None:
        """Enqueue records in order, waiting for room in the queue.

        One by one: the client's batch call is no faster than this loop, and does not support headers.
        """
        produce, topic = self._producer.produce, self.target.topic
        keys: Iterable[bytes | None] = repeat(None) if records.keys is None else records.keys
        headers: Iterable[Any] = repeat(None) if records.headers is None else records.headers
        with self._refusals():
            for at, (value, key, named) in enumerate(zip(records.values, keys, headers)):  # noqa: B905  some repeat forever
                if at % _SLICE == 0:
                    self._producer.poll(0)
                    self._check()
                while True:
                    try:
                        produce(topic, value, key, _ANY_PARTITION, None, None, _NOW, named)  # keywords are slower
                    except BufferError:
                        self._await_room()
                    else:
                        break

    def send_one(self, topic: str, key: str, value: str, *, partition: int) -> None:
        """Enqueue one record."""
        with self._refusals():
            while True:
                try:
                    self._producer.produce(topic, value, key, partition)
                except BufferError:
                    self._await_room()
                else:
                    return

    def wait(self) -> None:
        """Wait until the broker has every record; raises the error of the first that was not delivered."""
        left, moved = len(self._producer), time.monotonic()
        while left and not self._failed:
            with self._troubles():
                now_left = self._producer.flush(_LOOK_S)
            if now_left < left:
                left, moved = now_left, time.monotonic()
            elif time.monotonic() - moved > CALL_S:
                raise self._stalled()
        self._check()

    def commit(self) -> None:
        """Commit the transaction; if the outcome is unknown, reopening the slot reveals it."""
        with self._troubles():
            self._asked(self._producer.commit_transaction)
        self._begun = None

    def close(self) -> None:
        """Abort an open transaction, and release the connections."""
        begun, self._begun = self._begun, None
        if begun is None:
            self._producer.purge()
            return
        try:
            self._producer.abort_transaction(_ABORT_S)
        except confluent().KafkaException as error:
            # Whoever opens the slot next aborts it, or the broker does after its timeout.
            self._heard.append(error.args[0])

    def _await_room(self) -> None:
        """Wait until the queue is shorter."""
        full, patience = len(self._producer), time.monotonic() + CALL_S
        while len(self._producer) >= full:
            self._producer.poll(_LOOK_S)
            self._check()
            if time.monotonic() > patience:
                raise self._stalled()

    def _stalled(self) -> Unavailable:
        """Return the error for a stalled queue; raises instead if the topic no longer exists."""
        self._check_topic(timeout_s=_ABORT_S)
        return Unavailable(f"accepted no record for {CALL_S:.0f} s{self._last_error}")

    def _check_topic(self, *, timeout_s: float = CALL_S) -> None:
        topic = self.target.topic
        with self._troubles():
            found = self._producer.list_topics(topic, timeout=timeout_s).topics[topic]
        if found.error is not None:
            raise self._meaning(found.error)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Translate the producer's own rejection of a record into our exceptions."""
        try:
            yield
        except confluent().KafkaException as error:
            self._check()
            if error.args[0].name() != "MSG_SIZE_TOO_LARGE":
                raise self._meaning(error.args[0]) from error
            limit = self.settings.get("message.max.bytes", MOST_BYTES)
            raise self.target.too_large(f"{limit} bytes", "message.max.bytes in `options`") from error

    def _asked(self, call: Any) -> None:  # noqa: ANN401  the client's own methods
        try:
            call(CALL_S)
        except confluent().KafkaException as error:
            if error.args[0].name() in ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN"):
                raise Unavailable(f"did not respond within {CALL_S:.0f} s{self._last_error}") from error
            raise

    def _check(self) -> None:
        """Raise the error of the first record that was not delivered, preferring one that was not just purged.

        When one record fails a transaction, the others in the queue are purged, and may be reported first.
        """
        if not self._failed:
            return
        if all(error.name() in _PURGED for error in self._failed):
            self._producer.flush(_ABORT_S)
        reasons = [error for error in self._failed if error.name() not in _PURGED]
        raise self._meaning((reasons or self._failed)[0])

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        """Translate the client's exceptions into ours."""
        try:
            yield
        except confluent().KafkaException as error:
            raise self._meaning(error.args[0]) from error

    def _meaning(self, error: KafkaError) -> Exception:
        """Return our exception for `error`; a transaction that the broker aborted as too long looks like fencing."""
        taken_ms = 0 if self._begun is None else round((time.monotonic() - self._begun) * 1_000)
        if self.target.is_fencing(error) and taken_ms >= self.target.timeout_ms:
            facts = {"output": self.target.output, "topic": self.target.topic}
            return fault(
                "KAFKA_SINK_TOO_SLOW", limit=render_ms(self.target.timeout_ms), taken=roughly(taken_ms), **facts
            )
        return self.target.meaning(error)

    @property
    def _last_error(self) -> str:
        return f": {self._heard[-1].str()}" if self._heard else ""
