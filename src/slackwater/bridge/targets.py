"""Where a bridge writes to. A target's `write` returns when all it was given would survive a crash."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from slackwater.bridge.definition import KafkaPlace, MqttBridge
from slackwater.bridge.messages import Message, fits_a_line, topic_folder, wrapped_message
from slackwater.errors import fault, near_miss
from slackwater.kafka.client import Cluster, confluent, kafka_errors
from slackwater.sources.log.writing import LogWriter

_OPEN_FILES: Final = 64
"""So many partitions are written at a time: each is an open file, and of those a process has few to spare."""
_TIMEOUT_S: Final = 60.0
_LARGEST: Final = 300 << 20
"""More than MQTT's 256 MiB: whether a record is too large is for the topic to say."""


class Target(Protocol):
    """Something durable that takes messages."""

    wrapped: int
    """How many raw payloads were written as JSON objects, for a line cannot hold them."""

    def write(self, messages: Sequence[Message]) -> None:
        """Write messages, in their order for each topic; they are durable when this returns."""

    def close(self) -> None:
        """Let go of what is open."""


class LogTarget:
    """A log of JSON lines; every write makes one file for each partition that it has messages for."""

    def __init__(self, folder: str, *, partitions: int | None = None, is_raw: bool = False) -> None:
        self.wrapped = 0
        self._folder = folder
        self._partitions = partitions
        self._is_raw = is_raw
        with _target_errors(folder):
            # Files are completed by `write` alone: a timer's failure would come up a batch too late.
            self._log = LogWriter(Path(folder), roll_after=None)

    def write(self, messages: Sequence[Message]) -> None:
        """Write messages and flush."""
        by_partition: defaultdict[str, list[Message]] = defaultdict(list)
        for message in messages:
            by_partition[topic_folder(message.topic, partitions=self._partitions)].append(message)
        with _target_errors(self._folder):
            names = list(by_partition)
            for start in range(0, len(names), _OPEN_FILES):
                for partition in names[start : start + _OPEN_FILES]:
                    for message in by_partition[partition]:
                        self._log.append(self._line(message), partition)
                self._log.flush()

    def close(self) -> None:
        """Close the log; it holds nothing that is not written."""
        self._log.close()

    def _line(self, message: Message) -> bytes:
        if self._is_raw and fits_a_line(message.payload):
            return message.payload
        self.wrapped += self._is_raw
        return wrapped_message(message)


class KafkaTarget:
    """A Kafka topic; the key is the MQTT topic, as a folder's name, so that a topic's messages keep their order."""

    def __init__(self, place: KafkaPlace, *, is_raw: bool = False, timeout_s: float = _TIMEOUT_S) -> None:
        self.wrapped = 0
        self._place = place
        self._is_raw = is_raw
        self._failed: list[str] = []
        with kafka_errors(place.connection):
            cluster = Cluster(connection=place.connection)
            if not cluster.partitions([place.topic]):
                named = f"`{place.topic}`{near_miss(place.topic, cluster.names())}"
                raise fault("KAFKA_TOPIC_MISSING", topics=named, servers=place.connection.servers)
            self._producer = confluent().Producer(
                {
                    **place.connection.for_librdkafka(),
                    "enable.idempotence": True,
                    "linger.ms": 20,
                    "log_level": 2,
                    "message.max.bytes": _LARGEST,
                    "message.timeout.ms": int(timeout_s * 1000),
                }
            )

    def write(self, messages: Sequence[Message]) -> None:
        """Send messages and wait until the cluster has acknowledged each."""
        with _target_errors(self._place, confluent().KafkaException):
            for message in messages:
                value = message.payload if self._is_raw else wrapped_message(message)
                self._send(topic_folder(message.topic), value)
            while self._producer.flush(1.0):
                pass  # ends: a record that the cluster does not take in time is reported as failed
        if self._failed:
            raise fault("MQTT_TARGET_FAILED", target=self._place, cause=self._failed[0])

    def close(self) -> None:
        """Nothing is left: every `write` waits for its records."""

    def _send(self, key: str, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._place.topic, value, key=key, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(1.0)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: Any, _record: Any) -> None:  # noqa: ANN401  the client's own types
        if error is not None:
            self._failed.append(error.str())


def open_target(definition: MqttBridge) -> Target:
    """Open what a bridge writes to."""
    if isinstance(definition.to, KafkaPlace):
        return KafkaTarget(definition.to, is_raw=definition.is_raw)
    return LogTarget(definition.to, partitions=definition.partitions, is_raw=definition.is_raw)


@contextmanager
def _target_errors(target: object, kind: type[Exception] = OSError) -> Iterator[None]:
    """Turn what a file system or a client raises inside into a fault."""
    try:
        yield
    except kind as error:
        raise fault("MQTT_TARGET_FAILED", target=target, cause=error) from error
