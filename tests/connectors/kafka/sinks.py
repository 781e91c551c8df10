"""What the tests of the Kafka sink share: an output's rows, and what a stock reader of committed records sees."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin._listoffsets import OffsetSpec

from slackwater.connectors.kafka.sink import kafka
from slackwater.testing import SinkHarness
from tests.connectors.kafka.topics import Topics, until

SCHEMA = pl.Schema({"id": pl.Int64(), "name": pl.String()})


class Crash(BaseException):
    """The process dies here."""


def rows(*ids: int) -> pl.DataFrame:
    return pl.DataFrame({"id": ids, "name": [f"n{number}" for number in ids]}, schema=SCHEMA)


def job(topics: Topics, topic: str, **more: Any) -> SinkHarness:  # noqa: ANN401  the sink's and the harness's own
    """Return a job that writes to a topic; what the harness does not take goes to the sink."""
    ours = {name: more.pop(name) for name in ("pipeline", "output", "schema", "slot", "take_over") if name in more}
    more.setdefault("key", "name")
    return SinkHarness(sink=kafka(topics.servers, topic, **more), **{"schema": SCHEMA, **ours})


def settle(topics: Topics, topic: str) -> None:
    """Wait until every transaction has ended: a commit is final a moment before readers see it."""
    places = topics.cluster.partitions([topic])
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # have none
    asked = topics.cluster.admin.list_offsets({TopicPartition(*place): latest for place in places})
    high = {(place.topic, place.partition): future.result().offset for place, future in asked.items()}

    def is_settled() -> bool:
        ends = topics.cluster.ends(places)
        return all(ends[place] >= end for place, end in high.items())

    until(is_settled, "the end of all transactions", patience_s=30)


def records(topics: Topics, topic: str, *, isolation: str = "read_committed") -> list[Any]:
    """Return what a topic holds, by partition and offset."""
    places = topics.cluster.partitions([topic])
    consumer = Consumer(
        {
            "bootstrap.servers": topics.servers,
            "group.id": "tests",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(*place, 0) for place in places])
    found, ended, deadline = [], 0, time.monotonic() + 60
    while ended < len(places):
        assert time.monotonic() < deadline, "the end of the topic was not reached"
        for message in consumer.consume(1_000, timeout=0.2):
            if message.error() is not None:
                ended += 1
            else:
                found.append(message)
    consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def ids(topics: Topics, topic: str) -> list[int]:
    """Return the ids that are in the committed records, sorted."""
    settle(topics, topic)
    return sorted(json.loads(message.value())["id"] for message in records(topics, topic))


@dataclass(kw_only=True)
class Reader:
    """A stock consumer that reads committed records all the while."""

    servers: str
    topic: str
    seen: list[int] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": f"reader-{self.topic}",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "log_level": 2,
            }
        )
        consumer.subscribe([self.topic])
        while not self._stop.is_set():
            for message in consumer.consume(1_000, timeout=0.1):
                error, value = message.error(), message.value()
                if error is None:
                    self.seen.append(json.loads(value or b"")["id"])
                elif not error.retriable():
                    self.failed.append(error.str())
        consumer.close()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join(30)
