"""`python -m benchmarks.slow_partition`: a topic with a slow and a silent partition, under both kinds of watermark.

Twelve partitions of a real Kafka topic. Ten are in step; one delivers its events 70 seconds after the others; one
never delivers any. No event is out of order within its partition. Both sides allow for ten seconds of disorder, and
read the same rows in the same batches. Counted is how many events each of them would not count.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention
from rich.console import Console
from rich.table import Table

import slackwater as sw
from slackwater.connectors.kafka import broker
from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.connection import connection
from slackwater.connectors.kafka.source.stream import load_connector
from slackwater.eventtime.clock import Clock
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.session import spark_session
from slackwater.spark.start import make_job

PARTITIONS: Final = 12
SLOW, SILENT = 10, 11
BEHIND_MS: Final = 70_000
ROUND_MS: Final = 10_000
ROUNDS: Final = 14
PER_ROUND: Final = 10
"""Events of each partition in each round."""
SLACK: Final = "10 seconds"
_START_MS: Final = 1_767_268_800_000


@dataclass(frozen=True, kw_only=True)
class Count:
    """What one side made of the events."""

    events: int
    late: int
    """Events that came too late for their window: ours are in the late output, Spark's are gone."""
    batches_with_results: int


def produce(servers: str, topic: str) -> int:
    """Fill the topic, round by round; return how many events there are."""
    Cluster(connection=connection(servers)).create_topic(topic, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": servers})
    for partition, key, ts in _events():
        producer.produce(topic, f'{{"key":"{key}","ts":{ts}}}', partition=partition)
    assert producer.flush(60) == 0
    return ROUNDS * PER_ROUND * (PARTITIONS - 1)


def _events() -> Iterator[tuple[int, str, int]]:
    """Yield (partition, key, event time) in the order of production."""
    for number in range(ROUNDS):
        for partition in range(PARTITIONS):
            if partition == SILENT:
                continue
            behind = BEHIND_MS if partition == SLOW else 0
            for each in range(PER_ROUND):
                yield partition, f"k{each % 5}", _START_MS + number * ROUND_MS + each * ROUND_MS // PER_ROUND - behind


def ours(spark: SparkSession, servers: str, topic: str, home: Path) -> Count:
    """Run Slackwater over the topic, one round a batch, ten seconds of processing time apart."""
    late, shown = sw.sinks.memory(), sw.sinks.memory()
    source = sw.sources.kafka(servers, topic=topic, max_records_per_batch=PER_ROUND * (PARTITIONS - 1))
    events = (
        sw.stream("events", source)
        .decode(sw.formats.json("key string, ts long"))
        .event_time("ts", out_of_orderness="10s", idle_after="60s")
    )
    counted = events.key_by("key").window(sw.tumbling("10s")).aggregate(n=sw.count())
    pipeline = sw.Pipeline(
        "slow-partition", counted.to(shown), counted.late.to(late), events.dead_letters.drop(), key_groups=2
    )

    def paced(clock: Clock) -> Clock:
        return replace(clock, now_ms=_START_MS + clock.batch * ROUND_MS)

    job = make_job(
        pipeline.plan(), RunOptions(spark=spark, checkpoint=home / "ours", partitions=2, trigger="0s"), clock_hook=paced
    )
    job.checkpoint.write_clock(paced(job.checkpoint.clock(0)))
    with _running(job):
        while not job.ended.wait(0.05) and (not job.reports or job.reports[-1].batch < ROUNDS + 2):
            pass
    rows = sum(report.rows for report in job.reports)
    with_results = sum(report.rows_out.get("events.window", 0) > 0 for report in job.reports)
    return Count(events=rows, late=late.rows().height, batches_with_results=with_results)


def sparks(spark: SparkSession, servers: str, topic: str, home: Path) -> Count:
    """Run Spark's own windows over the topic, in the same batches."""
    load_connector(spark)
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", PER_ROUND * (PARTITIONS - 1))
        .load()
    )
    event = F.from_json(F.col("value").cast("string"), "key string, ts long").alias("event")
    counted = (
        records.select(event)
        .select("event.key", F.timestamp_millis("event.ts").alias("time"))
        .withWatermark("time", SLACK)
        .groupBy(F.window("time", "10 seconds"), "key")
        .count()
    )
    shown: list[int] = []
    query = (
        counted.writeStream.outputMode("append")
        .foreachBatch(lambda frame, _: shown.append(frame.agg(F.sum("count")).collect()[0][0] or 0))
        .option("checkpointLocation", str(home / "sparks"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = query.recentProgress
    watermark = datetime.fromisoformat(progress[-1]["eventTime"]["watermark"]).timestamp() * 1000
    # Windows that the watermark has not reached are still open, and nothing of them is lost yet.
    still_open = sum((ts // ROUND_MS + 1) * ROUND_MS > watermark for _, _, ts in _events())
    read = sum(batch["numInputRows"] for batch in progress)
    return Count(
        events=read, late=read - sum(shown) - still_open, batches_with_results=sum(count > 0 for count in shown)
    )


@contextmanager
def _running(job: Job) -> Iterator[None]:
    thread = threading.Thread(target=job.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        job.stop()
        thread.join()


def table(events: int, mine: Count, theirs: Count) -> Table:
    """Return both counts beside each other."""
    made = Table(
        "", "events read", "not counted", "batches with results", title=f"{events:,} events, none out of order"
    )
    for name, count in (("watermark per partition (Slackwater)", mine), ("one watermark (Spark)", theirs)):
        made.add_row(name, f"{count.events:,}", f"{count.late:,}", str(count.batches_with_results))
    return made


def main() -> None:
    """Start a broker, fill a topic, run both sides and print what they made of it."""
    spark = spark_session(master="local[2]", name="slow-partition", conf={"spark.sql.shuffle.partitions": "2"})
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        started = broker.up(home / "kafka", port=broker.free_port(), heap_mb=256)
        try:
            events = produce(started.servers, "events")
            mine = ours(spark, started.servers, "events", home)
            Console().print(table(events, mine, sparks(spark, started.servers, "events", home)))
        finally:
            broker.down(home / "kafka")
            spark.stop()


if __name__ == "__main__":
    main()
