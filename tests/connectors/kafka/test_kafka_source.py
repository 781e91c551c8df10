"""Kafka as a source, on a real broker: exactly the records that were produced, whatever happens meanwhile."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.kafka import broker, client
from slackwater.connectors.kafka.presence import KafkaWarning
from slackwater.connectors.memory.sink import MemorySink
from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from tests.connectors.kafka.topics import Topics, live, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)


def records(first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": number, "ts": NOON_MS + number * 1000} for number in range(first, first + count)]


def decoded(source: Any, name: str = "events") -> Any:  # noqa: ANN401  any source
    return sw.stream(name, source).decode(sw.formats.json("id long, ts long")).event_time("ts")


def job_of(spark: SparkSession, pipeline: sw.Pipeline, checkpoint: Path, **options: Any) -> Job:  # noqa: ANN401
    return make_job(
        pipeline.plan(), RunOptions(spark=spark, checkpoint=checkpoint, partitions=2, trigger="0s", **options)
    )


def ids(sink: MemorySink) -> list[int]:
    return sorted(sink.rows()["id"].to_list()) if sink.rows().height else []


def kept_rows(source: Any, sink: MemorySink) -> sw.Pipeline:  # noqa: ANN401
    events = decoded(source)
    return sw.Pipeline("kafka-rows", events.to(sink), events.dead_letters.to(sw.sinks.memory()), key_groups=2)


def test_each_record_comes_out_once_across_restarts_and_added_partitions(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make(partitions=2)
    for partition in range(2):
        topics.produce(topic, records(partition * 150, 150), partition=partition)
    sink = sw.sinks.memory()
    pipeline = kept_rows(sw.sources.kafka(topics.servers, topic=topic, max_records_per_batch=100), sink)
    with live(job_of(spark, pipeline, tmp_path / "checkpoint")) as job:
        until(lambda: len(job.reports) >= 1, "the first batch")
    assert all(report.rows <= 100 for report in job.reports), "a backlog is read in bounded batches"
    seen_before = len(ids(sink))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with live(job_of(spark, pipeline, tmp_path / "checkpoint")) as job:
            until(lambda: len(ids(sink)) == 300, "the rest of the first records")
            [added] = topics.cluster.admin.create_partitions([NewPartitions(topic, 4)]).values()
            added.result()
            for partition in range(2, 4):
                topics.produce(topic, records(partition * 150, 150), partition=partition)
            until(lambda: len(ids(sink)) >= 600, "the records of new partitions")
            until(lambda: not any(lag.records for lag in job.reports[-1].lag["events"].values()), "no lag")
    assert 0 < seen_before <= 300
    assert ids(sink) == list(range(600))
    assert [KafkaWarning] == list({entry.category for entry in said if "KAFKA_NEW_PARTITIONS" in str(entry.message)})
    until(lambda: topics.committed("kafka-rows", topic, 4) == [150] * 4, "the group's offsets")


@pytest.mark.long
def test_topic_that_is_ahead_waits_for_the_one_it_is_joined_with(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    fast, slow = topics.make(partitions=1), topics.make(partitions=1)
    topics.produce(fast, [{"id": number, "ts": NOON_MS + number * 60_000} for number in range(60)], partition=0)
    topics.produce(slow, records(0, 60), partition=0)
    left, right = (
        sw.stream(name, sw.sources.kafka(topics.servers, topic=topic, max_records_per_batch=10))
        .decode(sw.formats.json("id long, ts long"))
        .event_time("ts", max_drift=drift)
        for name, topic, drift in (("fast", fast, "5m"), ("slow", slow, None))
    )
    pairs = left.key_by("id").join(right.key_by("id"), between=("-2h", "2h"), name="pairs")
    sink = sw.sinks.memory()
    ends = pairs.to(sink), pairs.late.drop(), left.dead_letters.drop(), right.dead_letters.drop()
    job = job_of(spark, sw.Pipeline("aligned", *ends, key_groups=2), tmp_path / "checkpoint", bounded=True)
    job.run()
    stats = [report.stats.streams for report in job.reports]
    read = [tuple(one[name].rows if name in one else 0 for name in ("fast", "slow")) for one in stats]
    # Its first ten records are nine minutes ahead; the other stream's last one is a minute after noon.
    assert read[:7] == [(10, 10), *[(0, 10)] * 5, (10, 0)]
    assert ids(sink) == list(range(60))


def test_what_is_produced_during_a_bounded_run_is_left_to_the_next(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """During a run's one batch of records, and during its final one, a record comes whose window is still open."""
    topic, shown, late, left = topics.make(), sw.sinks.memory(), sw.sinks.memory(), sw.sinks.memory()
    topics.produce(topic, records(0, 2))

    def more(report: BatchReport) -> None:
        topics.produce(topic, records(2 + report.batch, 1))

    events = decoded(sw.sources.kafka(topics.servers, topic=topic, group=topic))
    counted = events.key_by("id").window(sw.tumbling("1h")).aggregate(n=sw.count())
    pipeline = sw.Pipeline("first", counted.to(shown), counted.late.to(late), events.dead_letters.drop(), key_groups=2)
    job = job_of(spark, pipeline, tmp_path / "first", bounded=True, on_batch=more)
    job.run()
    assert [report.rows for report in job.reports] == [2, 0]
    assert ids(shown) == [0, 1]
    assert late.rows().is_empty()
    until(lambda: topics.committed(topic, topic, 1) == [2], "the group's offset, before what was left")
    rest = kept_rows(sw.sources.kafka(topics.servers, topic=topic, start={topic: {0: 2}}), left)
    job_of(spark, rest, tmp_path / "next", bounded=True).run()
    assert ids(left) == [2, 3]


def test_partitions_read_to_their_end_hold_nothing_back_in_a_bounded_run(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """One partition has no record, one has few and early ones, one has many."""
    topic = topics.make(partitions=3)
    topics.produce(topic, records(10, 60), partition=0)
    topics.produce(topic, records(0, 2), partition=1)
    events = decoded(sw.sources.kafka(topics.servers, topic=topic, max_records_per_batch=20))
    counted = events.key_by("id").window(sw.tumbling("1s"), name="seconds").aggregate(n=sw.count())
    shown, late = sw.sinks.memory(), sw.sinks.memory()
    ends = (counted.to(shown), counted.late.to(late), events.dead_letters.drop())
    job = job_of(spark, sw.Pipeline("backfill", *ends, key_groups=2), tmp_path / "checkpoint", bounded=True)
    job.run()
    assert (shown.rows()["n"].sum(), late.rows().height) == (62, 0)
    assert sum(report.rows_out.get(counted.name, 0) for report in job.reports[:-1]) >= 20


def test_starts_at_a_time_at_offsets_or_at_the_end(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(partitions=2, retention_ms="-1")  # the records are older than a week
    for number in range(10):
        moment = NOON_MS + number * 60_000
        topics.produce(topic, records(number, 1), partition=number % 2, timestamp=moment)
    starts: dict[str, Any] = {
        "by-time": NOON + timedelta(minutes=6),
        "after-all": NOON + timedelta(days=1),
        "by-offset": {topic: {0: 4, 1: 2}},
        "by-some-offsets": {topic: {1: 5}},
        "latest": "latest",
    }
    sinks = {name: sw.sinks.memory() for name in starts}
    streams = {
        name: decoded(sw.sources.kafka(topics.servers, topic=topic, start=start), name)
        for name, start in starts.items()
    }
    ends = [end for name, each in streams.items() for end in (each.to(sinks[name]), each.dead_letters.drop())]
    job_of(spark, sw.Pipeline("starts", *ends, key_groups=2), tmp_path / "checkpoint", bounded=True).run()
    assert {name: ids(sink) for name, sink in sinks.items()} == {
        "by-time": [6, 7, 8, 9],
        "after-all": [],
        "by-offset": [5, 7, 8, 9],
        "by-some-offsets": [0, 2, 4, 6, 8],
        "latest": [],
    }


def test_record_keeps_what_kafka_knows_of_it_and_aborted_ones_are_not_read(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make(retention_ms="-1")  # as above
    topics.produce(topic, records(0, 1), key=b"k", headers=[("h", b"1"), ("h", None)], timestamp=NOON_MS)
    producer = Producer({"bootstrap.servers": topics.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for is_good in (False, True):
        producer.begin_transaction()
        producer.produce(topic, b'{"id": 1, "ts": 1}' if is_good else b'{"id": 666, "ts": 1}')
        producer.flush(30)
        producer.commit_transaction(30) if is_good else producer.abort_transaction(30)
    topics.produce(topic, [b"{bad"], key=b"b", headers=[("why", b"!")], timestamp=NOON_MS + 1)
    kept, dead = sw.sinks.memory(), sw.sinks.memory()
    columns = ["key", "headers", "topic", "partition", "offset", "timestamp"]
    source = sw.sources.kafka(topics.servers, pattern=topic, metadata=columns)
    events = sw.stream("events", source).decode(sw.formats.json("id long, ts long")).ingestion_time()
    windowed = events.key_by("id").window(sw.tumbling("1h")).aggregate(n=sw.count())
    pipeline = sw.Pipeline(
        "known",
        events.to(kept),
        events.dead_letters.to(dead),
        windowed.to(shown := sw.sinks.memory()),
        windowed.late.drop(),
        key_groups=2,
    )
    job_of(spark, pipeline, tmp_path / "checkpoint", bounded=True).run()
    first, second = kept.rows().sort("id").rows(named=True)
    assert first == {
        "id": 0,
        "ts": NOON_MS,
        "kafka_key": b"k",
        "kafka_headers": [{"name": "h", "value": b"1"}, {"name": "h", "value": None}],
        "kafka_topic": topic,
        "kafka_partition": 0,
        "kafka_offset": 0,
        "kafka_timestamp": NOON,
    }
    assert (second["id"], second["kafka_key"], second["kafka_headers"]) == (1, None, None)
    [letter] = dead.rows().rows(named=True)
    assert letter["payload"] == b"{bad"
    assert (letter["key"], letter["headers"]) == (b"b", [{"name": "why", "value": b"!"}])
    assert (letter["partition"], letter["reason"]) == (f"{topic}/0", "malformed")
    assert letter["offset"] == second["kafka_offset"] + 2, "a transaction's end takes an offset"
    assert letter["ingestion_time"] == NOON + timedelta(milliseconds=1)
    assert shown.rows()["window_start"].min() == NOON, "ingestion time is the broker's"


def test_records_that_are_gone_stop_the_job_unless_it_may_go_on(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic, sink = topics.make(), sw.sinks.memory()
    topics.produce(topic, records(0, 20))

    def reading(**options: Any) -> sw.Pipeline:  # noqa: ANN401
        return kept_rows(sw.sources.kafka(topics.servers, topic=topic, max_records_per_batch=5, **options), sink)

    with live(job_of(spark, reading(), tmp_path / "checkpoint")) as job:
        until(lambda: bool(job.reports), "a batch")
    read = len(ids(sink))
    topics.produce(topic, records(20, 10))
    [deleted] = topics.cluster.admin.delete_records([TopicPartition(topic, 0, 25)]).values()
    deleted.result()
    said = refused(lambda: job_of(spark, reading(), tmp_path / "checkpoint", bounded=True).run())
    assert "[KAFKA_DATA_LOSS]" in said
    assert f"stream `events` lost {25 - read} records: {topic}/0 offsets {read} to 24; " in said
    with pytest.warns(KafkaWarning, match=r"KAFKA_LOST.*the job continues without them"):
        job_of(spark, reading(on_data_loss="continue"), tmp_path / "checkpoint", bounded=True).run()
    assert ids(sink) == [*range(read), *range(25, 30)]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::slackwater.base.errors.SlackwaterWarning")  # that Kafka is away, and back
def test_broker_that_is_restarted_is_waited_for(spark: SparkSession, kafka_parts: None, tmp_path: Path) -> None:
    own = broker.up(tmp_path / "kafka", port=broker.free_port(), heap_mb=256)
    try:
        topics = Topics(servers=own.servers)
        topic, sink = topics.make(), sw.sinks.memory()
        topics.produce(topic, records(0, 10))
        pipeline = kept_rows(sw.sources.kafka(own.servers, topic=topic), sink)
        with live(job_of(spark, pipeline, tmp_path / "checkpoint")):
            until(lambda: len(ids(sink)) == 10, "the first records")
            broker.down(tmp_path / "kafka")
            broker.up(tmp_path / "kafka", port=own.port, heap_mb=256)
            topics.produce(topic, records(10, 10))
            until(lambda: len(ids(sink)) == 20, "the records after the restart")
        assert ids(sink) == list(range(20))
    finally:
        broker.down(tmp_path / "kafka")


def refused(make: Callable[[], Any]) -> str:
    with pytest.raises(RunError) as caught:
        make()
    return str(caught.value)


def test_missing_topic_unreachable_cluster_and_new_topic_are_reported_before_the_first_batch(
    spark: SparkSession, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(source: Any, checkpoint: str = "none") -> None:  # noqa: ANN401
        job_of(spark, kept_rows(source, sw.sinks.memory()), tmp_path / checkpoint, bounded=True).run()

    said = refused(lambda: start(sw.sources.kafka(topics.servers, topic="nowhere")))
    assert "KAFKA_TOPIC_MISSING" in said
    assert "has no `nowhere`; create them" in said
    nobody = f"localhost:{broker.free_port()}"
    with monkeypatch.context() as patch:
        patch.setattr(client, "_TIMEOUT_S", 1.0)
        said = refused(lambda: start(sw.sources.kafka(nobody, topic="orders")))
    assert "KAFKA_UNREACHABLE" in said
    assert f"{nobody} does not respond" in said
    topic = topics.make()
    source = sw.sources.kafka(topics.servers, topic=topic)
    topics.produce(topic, records(0, 1))
    with live(job_of(spark, kept_rows(source, sw.sinks.memory()), tmp_path / "anew")) as job:
        until(lambda: bool(job.reports), "a batch")
    [deleted] = topics.cluster.admin.delete_topics([topic]).values()
    deleted.result()
    until(lambda: topic not in topics.cluster.admin.list_topics().topics, "the topic to be gone")
    topics.cluster.create_topic(topic)
    topics.produce(topic, records(100, 5))
    assert f"`{topic}` of stream `events` was deleted and recreated" in refused(lambda: start(source, "anew"))


@pytest.mark.long
def test_million_records_through_the_whole_pipeline_equal_the_truth(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic, count = topics.make(partitions=4), 1_000_000
    rows = pl.select(id=pl.int_range(count)).with_columns(
        user="u" + (pl.col("id") * 7919 % 1000).cast(pl.String),
        ts=NOON_MS + pl.col("id") // 10 + (pl.col("id") * 31 % 2000),
        cents=pl.col("id") % 997,
    )
    producer = Producer({"bootstrap.servers": topics.servers, "linger.ms": 20, "queue.buffering.max.messages": 500_000})
    for at, line in enumerate(rows.write_ndjson().split("\n")[:-1]):
        producer.produce(topic, line, partition=at & 3)
        if at % 50_000 == 0:
            producer.poll(0)
            producer.flush()
    assert producer.flush(120) == 0
    source = sw.sources.kafka(topics.servers, topic=topic, max_records_per_batch=400_000)
    events = (
        sw.stream("events", source)
        .decode(sw.formats.json("id long, user string, ts long, cents long"))
        .event_time("ts", out_of_orderness="3s")
    )
    windowed = events.key_by("user").window(sw.tumbling("10s")).aggregate(n=sw.count(), cents=sw.sum("cents"))
    shown, late = sw.sinks.memory(), sw.sinks.memory()
    pipeline = sw.Pipeline(
        "million", windowed.to(shown), windowed.late.to(late), events.dead_letters.drop(), key_groups=2
    )
    job_of(spark, pipeline, tmp_path / "checkpoint", bounded=True).run()
    assert late.rows().is_empty()
    truth = (
        rows.group_by("user", window_start=pl.col("ts") // 10_000 * 10_000)
        .agg(n=pl.len().cast(pl.Int64), cents=pl.col("cents").sum())
        .sort("user", "window_start")
    )
    got = shown.rows().select("user", pl.col("window_start").dt.epoch("ms"), "n", "cents").sort("user", "window_start")
    assert got.equals(truth.select(got.columns).cast(got.schema))
