"""The demo's own Kafka broker, and a topic on it."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass

import polars as pl

import slackwater as sw
from slackwater.connectors.kafka import broker
from slackwater.connectors.kafka.client import Cluster, confluent
from slackwater.connectors.kafka.connection import connection
from slackwater.connectors.sink import Sink
from slackwater.tools.demo.definition import PURCHASES
from slackwater.tools.demo.places.base import (
    LOOK_EVERY_S,
    PATIENCE_S,
    WINDOW,
    Place,
    command,
    from_json_lines,
    give_up_after,
)


@dataclass(kw_only=True)
class Kafka(Place):
    """A topic of the demo's own broker, to which every pane is appended."""

    kind = "kafka"
    title = f"Kafka topic {PURCHASES}"
    packages = {"confluent_kafka": "confluent-kafka"}  # noqa: RUF012  constant, as the base class declares
    keeps_panes = True
    _servers: str = ""

    def start(self) -> None:
        """Start the broker; the first start fetches its jars."""
        confluent()
        self._servers = broker.up(self.folder, port=broker.free_port(), heap_mb=256).servers

    def sink(self) -> Sink:
        """Return the sink: a topic of four partitions."""
        return sw.sinks.kafka(self._servers, PURCHASES, key=WINDOW, create=4)

    @property
    def look(self) -> str:
        """A command with a common consumer."""
        return f"kcat -C -b {self._servers} -t {PURCHASES}"

    @property
    def left(self) -> tuple[str, str]:
        """The broker's folder."""
        return "Kafka, stopped", str(self.folder)

    @property
    def again(self) -> list[str]:
        """Commands that start the broker at the same address, and export its topic to files of JSON lines."""
        ours, folder = command("slackwater"), shlex.quote(str(self.folder))
        written = shlex.quote(str(self.folder / PURCHASES))
        return [
            f"{ours} kafka up --folder {folder} --port {self._servers.rpartition(':')[2]}",
            f"{ours} log export {written} --topic {PURCHASES} --servers {self._servers}",
            f"tail {written}/*/*.jsonl",
            f"{ours} kafka down --folder {folder}",
        ]

    def rows(self) -> pl.DataFrame:
        """Return all committed records."""
        from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition  # noqa: PLC0415  as elsewhere

        cluster = Cluster(connection=connection(self._servers))
        ends = _settled_ends(cluster)
        reading = {
            "bootstrap.servers": self._servers,
            "group.id": "demo",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        consumer = Consumer(reading)
        values: list[bytes] = []
        is_read: set[int | None] = set()
        try:
            consumer.assign([TopicPartition(*place, 0) for place in ends])
            until = time.monotonic() + PATIENCE_S
            while len(is_read) < len(ends):
                for message in consumer.consume(1_000, timeout=LOOK_EVERY_S):
                    until = time.monotonic() + PATIENCE_S
                    error = message.error()
                    if error is None:
                        values.append(message.value() or b"{}")
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  the library's name
                        is_read.add(message.partition())
                    else:
                        raise KafkaException(error)
                give_up_after(until, "the topic could not be read to its end")
        finally:
            consumer.close()
        return from_json_lines(b"\n".join(values))

    def stop(self) -> None:
        """Stop the broker."""
        broker.down(self.folder)


def _settled_ends(cluster: Cluster) -> dict[tuple[str, int], int]:
    """Return the topic's end offsets once all transactions have ended; readers see a commit slightly later."""
    from confluent_kafka import TopicPartition  # noqa: PLC0415  an optional dependency
    from confluent_kafka.admin._listoffsets import OffsetSpec  # noqa: PLC0415  optional, and not exported elsewhere

    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # has no types
    asked = cluster.admin.list_offsets({TopicPartition(*each): latest for each in cluster.partitions([PURCHASES])})
    written = {(each.topic, each.partition): future.result().offset for each, future in asked.items()}
    until = time.monotonic() + PATIENCE_S
    while any(cluster.ends(written)[each] < end for each, end in written.items()):
        give_up_after(until, "a transaction has not ended")
    return written
