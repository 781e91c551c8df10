"""The targets that a bridge writes to. A target's `write` returns once all messages would survive a crash."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from slackwater.base.errors import fault, near_miss
from slackwater.connectors.kafka.client import Cluster, confluent, kafka_errors
from slackwater.connectors.log.writing import LogWriter
from slackwater.connectors.mqtt.definition import KafkaPlace, MqttBridge
from slackwater.connectors.mqtt.messages import Message, fits_a_line, topic_folder, wrapped_message

_OPEN_FILES: Final = 64
"""The most partitions written at a time: each is an open file, of which a process can have only a limited number."""
_TIMEOUT_S: Final = 60.0
_LARGEST: Final = 300 << 20
"""More than MQTT's limit of 256 MiB, so that the topic's own limit applies."""


class BridgeTarget(Protocol):
    """Durable storage for messages."""

    wrapped: int
    """The number of raw payloads written as JSON objects because a line cannot hold them."""

    def write(self, messages: Sequence[Message]) -> None:
        """Write messages, in order for each topic; they are durable when this returns."""

    def close(self) -> None:
        """Release open resources."""


class LogTarget:
    """A log of JSON lines; every write creates one file for each partition with messages."""

    def __init__(self, folder: str, *, partitions: int | None = None, is_raw: bool = False) -> None:
        self.wrapped = 0
        self._folder = folder
        self._partitions = partitions
        self._is_raw = is_raw
        with _target_errors(folder):
            # Only `write` completes files: a failure in a timer would surface a batch too late.
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
        """Close the log, which holds no unwritten messages."""
        self._log.close()

    def _line(self, message: Message) -> bytes:
        if self._is_raw and fits_a_line(message.payload):
            return message.payload
        self.wrapped += self._is_raw
        return wrapped_message(message)


class KafkaTarget:
    """A Kafka topic; the key is the MQTT topic as a folder name, so that the messages of a topic stay in order."""

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
        """Send messages and wait until the cluster has acknowledged all of them."""
        with _target_errors(self._place, confluent().KafkaException):
            for message in messages:
                value = message.payload if self._is_raw else wrapped_message(message)
                self._send(topic_folder(message.topic), value)
            while self._producer.flush(1.0):
                pass  # terminates: a record that the cluster does not accept in time is reported as failed
        if self._failed:
            raise fault("MQTT_TARGET_FAILED", target=self._place, cause=self._failed[0])

    def close(self) -> None:
        """Do nothing: every `write` waits for its records."""

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


def open_target(definition: MqttBridge) -> BridgeTarget:
    """Open the target of a bridge."""
    if isinstance(definition.to, KafkaPlace):
        return KafkaTarget(definition.to, is_raw=definition.is_raw)
    return LogTarget(definition.to, partitions=definition.partitions, is_raw=definition.is_raw)


@contextmanager
def _target_errors(target: object, kind: type[Exception] = OSError) -> Iterator[None]:
    """Turn exceptions of the file system or the client into faults."""
    try:
        yield
    except kind as error:
        raise fault("MQTT_TARGET_FAILED", target=target, cause=error) from error
