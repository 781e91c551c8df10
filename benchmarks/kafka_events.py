"""Events in topics of a real broker: each side reads its own, so that one can be filled while the other rests."""

from __future__ import annotations

import atexit
import itertools
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

import slackwater as sw
from benchmarks.data import DDL, Events
from slackwater.connectors.kafka import broker
from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.connection import connection
from slackwater.connectors.kafka.source.stream import load_connector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from benchmarks.sides import Deliver
    from slackwater.connectors.source import Source

_PARTITIONS: Final = 4
_POLL_EVERY: Final = 10_000
_NUMBERS: Final = itertools.count()


def kafka_source(events: Events) -> tuple[Source, Deliver]:
    """Return a topic as Slackwater reads it, and what fills it."""
    topic = _topic()
    source = sw.sources.kafka(_servers(), topic=topic, max_records_per_batch=4 * events.rows_per_batch)
    return source, _sender(topic)


def kafka_frame(spark: SparkSession, events: Events) -> tuple[DataFrame, Deliver]:
    """Return a topic as Spark's own source and `from_json` read it, and what fills it."""
    topic = _topic()
    load_connector(spark)
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", _servers())
        .option("subscribe", topic)
        .option("kafka.isolation.level", "read_committed")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 4 * events.rows_per_batch)
        .load()
    )
    event = F.from_json(F.col("value").cast("string"), DDL).alias("event")
    return records.select(event).select("event.*"), _sender(topic)


def _sender(topic: str) -> Deliver:
    """Return what sends a batch's records in one transaction: whoever reads sees all of a batch or nothing."""
    producer = Producer(
        {
            "bootstrap.servers": _servers(),
            "transactional.id": topic,
            "transaction.timeout.ms": 600_000,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.init_transactions(60)
    cluster = Cluster(connection=connection(_servers()))
    sent = [0] * _PARTITIONS

    def send(files: list[Path]) -> None:
        producer.begin_transaction()
        for number, record in enumerate(itertools.chain.from_iterable(map(_records, files))):
            while True:
                try:
                    producer.produce(topic, record, partition=number % _PARTITIONS)
                    break
                except BufferError:
                    producer.poll(1)
            if number % _POLL_EVERY == 0:
                producer.poll(0)
            sent[number % _PARTITIONS] += 1
        producer.commit_transaction(600)
        for partition in range(_PARTITIONS):
            sent[partition] += 1  # the transaction's end is a record, too, and is written after the commit has returned
        places = [(topic, partition) for partition in range(_PARTITIONS)]
        while list(cluster.ends(places).values()) != sent:
            time.sleep(0.01)

    return send


def _records(file: Path) -> list[bytes]:
    if file.suffix == ".jsonl":
        return file.read_bytes().splitlines()
    return pl.read_parquet(file)["value"].to_list()


def _topic() -> str:
    name = f"bench-{next(_NUMBERS)}"
    Cluster(connection=connection(_servers())).create_topic(name, partitions=_PARTITIONS)
    return name


@lru_cache(maxsize=1)
def _servers() -> str:
    folder = Path(tempfile.mkdtemp(prefix="slackwater-bench-kafka-"))
    started = broker.up(folder, port=broker.free_port())
    atexit.register(broker.down, folder)
    return started.servers
