"""Topics of a real broker, filled and read with a stock client."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.connection import connection
from slackwater.spark.job import Job

PATIENCE_S: Final = 180.0
_NUMBERS = itertools.count()


@dataclass(kw_only=True)
class Topics:
    """A broker's topics."""

    servers: str
    cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = Cluster(connection=connection(self.servers))

    def make(self, partitions: int = 1, **settings: str) -> str:
        """Create a topic of a new name."""
        name = f"events-{next(_NUMBERS)}"
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        self.cluster.create_topic(name, partitions=partitions, settings=dotted)
        return name

    def produce(
        self,
        topic: str,
        records: Iterable[Mapping[str, Any] | bytes | None],
        *,
        partition: int = 0,
        **more: Any,  # noqa: ANN401  as Producer.produce's
    ) -> None:
        """Write records to a partition, and wait until the broker has them."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        for record in records:
            value = record if record is None or isinstance(record, bytes) else json.dumps(record).encode()
            producer.produce(topic, value, partition=partition, **more)
            producer.poll(0)
        assert producer.flush(60) == 0

    def committed(self, group: str, topic: str, partitions: int) -> list[int]:
        """Return the offsets of a consumer group, as Kafka's own tools see them."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        try:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            until(lambda: _has_coordinator(consumer, places), f"a coordinator of {group}")
            return [place.offset for place in consumer.committed(places, timeout=30)]
        finally:
            consumer.close()


def _has_coordinator(consumer: Consumer, places: list[TopicPartition]) -> bool:
    """Return whether a group can be asked for its offsets; not while its first topic is being made."""
    try:
        consumer.committed(places, timeout=30)
    except KafkaException as error:
        if error.args[0].name() not in {"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"}:
            raise
        return False
    return True


def until(holds: Callable[[], bool], what: str, *, patience_s: float = PATIENCE_S) -> None:
    """Wait until `holds()`; fail with `what` if it never does."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"waited {patience_s:.0f} s for {what}"
        time.sleep(0.05)


@contextmanager
def live(job: Job) -> Iterator[Job]:
    """Run `job` in a thread until the block ends; an error of the job's fails the test."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            job.run()
        except BaseException as error:  # noqa: BLE001  carried over to the test's thread
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield job
    finally:
        job.stop()
        thread.join(PATIENCE_S)
    if failed:
        raise failed[0]
    assert not thread.is_alive(), "the job did not stop"
