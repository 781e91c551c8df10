"""The load of a latency case: events sent at a steady rate, and results received as any reader would."""

from __future__ import annotations

import json
import threading
import time
from array import array
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.connection import connection

PARTITIONS: Final = 4
KEYS: Final = 1_000
_TICK_S: Final = 0.005


@dataclass(kw_only=True)
class Feed:
    """Sends events to their topics at a steady rate, from the moment it is started."""

    servers: str
    topics: tuple[str, ...]
    rate: int
    sent_at: array[float] = field(default_factory=lambda: array("d"))
    """The time of the last produce call for each event, by its id."""
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._send, name="feed", daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Stop sending; return the number of events."""
        self._over.set()
        assert self._thread is not None
        self._thread.join()
        return len(self.sent_at)

    def _send(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 1, "acks": "all"})
        began = time.monotonic()
        while not self._over.wait(_TICK_S):
            for number in range(len(self.sent_at), int((time.monotonic() - began) * self.rate)):
                event = {
                    "id": number,
                    "key": f"key-{number * 7_919 % KEYS}",
                    "ts": time.time_ns() // 1_000_000,
                    "value": number % 10 / 10,
                }
                value = json.dumps(event)
                now = time.monotonic()
                for topic in self.topics:
                    producer.produce(topic, value, partition=number % PARTITIONS)
                self.sent_at.append(now)
            producer.poll(0)
        assert producer.flush(60) == 0, "the broker did not take everything"


@dataclass(kw_only=True)
class Results:
    """Receives results from the topic `results`, committed ones only."""

    servers: str
    feed: Feed
    latencies: array[float] = field(default_factory=lambda: array("d"))
    """Seconds from the produce call of the newest event in a result to its receive, for events sent in time."""
    ids: array[int] = field(default_factory=lambda: array("q"))
    """The ids of all results."""
    since: float = float("inf")
    """Results of events that were sent earlier are not measured."""
    until: float = float("inf")
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to receive."""
        self._thread = threading.Thread(target=self._receive, name="results", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop receiving."""
        self._over.set()
        assert self._thread is not None
        self._thread.join()

    def _receive(self) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.servers,
            "group.id": "latency",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 5,
        }
        consumer = Consumer(settings)
        consumer.assign([TopicPartition("results", number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        while not self._over.is_set():
            record = consumer.poll(0.1)
            if record is None or record.error() is not None:
                continue
            now = time.monotonic()
            value = record.value()
            assert isinstance(value, bytes)
            number = json.loads(value)["id"]
            self.ids.append(number)
            sent_at = self.feed.sent_at[number]
            if self.since <= sent_at < self.until:
                self.latencies.append(now - sent_at)
        consumer.close()


def make_topics(servers: str, names: tuple[str, ...]) -> None:
    """Create topics."""
    cluster = Cluster(connection=connection(servers))
    for name in names:
        cluster.create_topic(name, partitions=PARTITIONS)
